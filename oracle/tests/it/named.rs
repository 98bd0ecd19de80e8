//! named
