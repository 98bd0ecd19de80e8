//! policy-api
