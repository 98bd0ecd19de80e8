//! Holds prices against what others measured and published: fits calibrations to benchmark files, validates predictions
//! on shapes that the fit did not see, and recomputes published figures.
//!
//! Pricing itself is `roofline`; nothing here is needed to replay a trace. Everything that knows another project's file
//! format is here.

mod calibration;
mod catalogue;
mod figures;
mod files;
mod fit;
mod fitted;
mod measurement;
mod rows;
mod validate;

pub use calibration::fit_calibration;
pub use catalogue::{Geometry, read_catalogue};
pub use figures::{Figure, figures};
pub use files::registry::read_measurements;
pub use measurement::{Measurement, TimedWork};
pub use rows::Split;
pub use validate::{ErrorRow, Errors, validate};
