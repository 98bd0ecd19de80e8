//! The radix prefix cache.
