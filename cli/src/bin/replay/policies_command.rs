//! `replay policies`: the registry, as help.

use std::fmt::Write;

use anyhow::{Result, bail};
use cli::output::write_output;
use cli::policies::EVERY;
use policies::{ADMISSION, BuildEviction, EVICTION, Entry, Track};

pub(crate) fn print(name: Option<&str>) -> Result<()> {
    let text = match name {
        None | Some(EVERY) => list(),
        Some(name) => details(name.split('(').next().unwrap_or(name))?,
    };
    write_output(&text, None)
}

fn list() -> String {
    let mut text = String::from("Eviction (--policy):\n");
    EVICTION.iter().for_each(|entry| line(&mut text, entry));
    text.push_str("\nAdmission (--admission):\n");
    ADMISSION.iter().for_each(|entry| line(&mut text, entry));
    text
}

fn line<B>(text: &mut String, entry: &Entry<B>) {
    let hints = if entry.track == Track::Declared {
        " [declared hints]"
    } else {
        ""
    };
    let _ = writeln!(text, "  {:<18} {}{hints}", entry.name, entry.summary);
}

fn details(name: &str) -> Result<String> {
    let mut text = String::new();
    for entry in EVICTION.iter().filter(|entry| entry.name == name) {
        describe(&mut text, "eviction policy", entry);
        let _ = match entry.build {
            BuildEviction::Alone(_) => Ok(()),
            BuildEviction::With(admission, _) => writeln!(
                text,
                "comes with admission `{admission}`, unless another is named"
            ),
            BuildEviction::Both(_) => {
                writeln!(text, "admits too, unless an admission policy is named")
            }
        };
    }
    for entry in ADMISSION.iter().filter(|entry| entry.name == name) {
        describe(&mut text, "admission policy", entry);
    }
    if text.is_empty() {
        let unknown = policies::eviction(name)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        let admissions: Vec<_> = ADMISSION.iter().map(|entry| entry.name).collect();
        bail!("{unknown}; admission policies: {}", admissions.join(", "));
    }
    Ok(text)
}

fn describe<B>(text: &mut String, kind: &str, entry: &Entry<B>) {
    let gap = if text.is_empty() { "" } else { "\n" };
    let track = match entry.track {
        Track::Online => "online: sees the past only",
        Track::Declared => "declared: reads the trace's hint columns",
    };
    let _ = write!(
        text,
        "{gap}{} ({kind})\n  {}\n\nsource     {}\nidea       {}\ncost       {}\navoid when {}\ntrack      {track}\n",
        entry.name, entry.summary, entry.source, entry.idea, entry.cost, entry.avoid_when,
    );
    for param in entry.params {
        let _ = writeln!(
            text,
            "parameter  {}={}: {} ({})",
            param.name, param.default, param.help, param.domain
        );
    }
}
