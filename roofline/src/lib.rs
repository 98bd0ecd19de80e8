//! Pure functions from model, GPU and token counts to seconds, FLOPs and bytes.
