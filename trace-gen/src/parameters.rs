//! Parameters of workloads, each declared once: its field, its name, its domain, its default and its help.

use params::Domain;
use trace::synthetic::LONGEST_TEXT_TOKENS;

use crate::draw::Dist;

/// A distribution of times or shares.
pub(crate) const DIST: Domain = Domain::Parsed("a distribution", |text| scaled(text, f64::MAX));

/// A distribution of lengths in tokens.
pub(crate) const TOKENS: Domain = Domain::Parsed("a distribution of tokens", |text| {
    scaled(text, f64::from(LONGEST_TEXT_TOKENS))
});

/// A distribution of numbers of things that are in memory together.
pub(crate) const COUNT: Domain =
    Domain::Parsed("a distribution of counts", |text| scaled(text, 1e6));

fn scaled(text: &str, most: f64) -> Result<(), String> {
    match text.parse::<Dist>()?.scale() {
        scale if scale <= most => Ok(()),
        scale => Err(format!("{scale} in it is more than {most}")),
    }
}

/// A probability.
pub(crate) const CHANCE: Domain = Domain::Number(0.0, 1.0);

/// A whole number, from `least` on.
pub(crate) const fn count_from(least: u64) -> Domain {
    Domain::Count(least, u32::MAX as u64)
}

/// Declares parameters: a struct of their values, with `PARAMS`, their list for help and checks, and `read`. A field
/// `job_tokens` is the parameter `job-tokens`.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $name:ident { $($field:ident: $of:ty, $domain:expr, $default:literal, $help:literal;)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $of,)*
        }

        impl $name {
            pub(crate) const PARAMS: &'static [params::Param] = &[$(params::Param {
                name: $crate::parameters::dashed!($field),
                default: $default,
                domain: $domain,
                help: $help,
            },)*];

            pub(crate) fn read(params: &params::Params) -> Self {
                Self {
                    $($field: params.parsed($crate::parameters::dashed!($field)),)*
                }
            }
        }
    };
}

/// The name of a field with dashes.
macro_rules! dashed {
    ($field:ident) => {{
        const NAME: &str = stringify!($field);
        const BYTES: [u8; NAME.len()] = $crate::parameters::with_dashes(NAME);
        const DASHED: &str = match std::str::from_utf8(&BYTES) {
            Ok(name) => name,
            Err(_) => NAME,
        };
        DASHED
    }};
}

pub(crate) use {dashed, parameters};

/// The bytes of a name, with dashes in the place of underscores.
pub(crate) const fn with_dashes<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        bytes[at] = match name.as_bytes()[at] {
            b'_' => b'-',
            byte => byte,
        };
        at += 1;
    }
    bytes
}
