//! What the registry makes of files, and of an object that evicts and admits.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use policies::{
    ADMISSION, BuildEviction, EVICTION, EvictionEntry, EvictionSpec, Params, PolicyContext, Track,
};
use policy_api::{
    AdmissionPolicy, BlockId, Candidate, EvictionPolicy, NodeId, Ranked, RequestView, Tick, Victim,
    WithdrawReason,
};

use cache::EvictUnit;

use testkit::{SmallTrace as Trace, asks, config};

#[test]
fn every_policy_file_is_registered() {
    let eviction: Vec<_> = EVICTION.iter().map(|entry| entry.name).collect();
    let admission: Vec<_> = ADMISSION.iter().map(|entry| entry.name).collect();
    for (folder, registered) in [("eviction", eviction), ("admission", admission)] {
        let declared: BTreeSet<_> = policy_files(folder)
            .iter()
            .map(|code| declared_name(code))
            .collect();
        let registered: BTreeSet<_> = registered.into_iter().map(str::to_owned).collect();
        assert_eq!(
            declared, registered,
            "a file of {folder} has no line in its mod.rs"
        );
    }
}

/// Text of each policy's file, or of the `mod.rs` of its folder.
fn policy_files(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(folder);
    let paths = fs::read_dir(&folder)
        .expect("a folder of policies")
        .map(|file| file.expect("a policy").path())
        .filter(|path| !path.ends_with("mod.rs"));
    let files = paths.map(|path| {
        if path.is_dir() {
            path.join("mod.rs")
        } else {
            path
        }
    });
    files
        .map(|path| fs::read_to_string(path).expect("a policy's file"))
        .collect()
}

/// The name in an `ENTRY`.
fn declared_name(code: &str) -> String {
    let name = code
        .split("const ENTRY")
        .nth(1)
        .and_then(|entry| entry.split("name: \"").nth(1));
    let name = name.and_then(|rest| rest.split('"').next());
    name.expect("an ENTRY has a name").to_owned()
}

/// Evicts the oldest, and admits nothing but what it evicted before: the admission half needs what the eviction half knows.
#[derive(Default)]
struct Regretful {
    leaves: Ranked<Tick>,
    evicted: BTreeSet<BlockId>,
    has_room: bool,
}

impl EvictionPolicy for Regretful {
    fn offer(&mut self, leaf: &Candidate) {
        self.leaves.put(leaf.id, leaf.last_used);
    }
    fn withdraw(&mut self, id: NodeId, _: WithdrawReason) {
        self.leaves.remove(id);
    }
    fn victim(&mut self) -> Option<Victim> {
        self.leaves.first().map(Victim::node)
    }
    fn evicted(&mut self, evicted: &Candidate, _: bool) {
        self.leaves.remove(evicted.id);
        self.evicted.insert(evicted.first_block);
        self.has_room = false;
    }
}

impl AdmissionPolicy for Regretful {
    fn admit(&mut self, request: &RequestView<'_>, _: Option<&Candidate>) -> u32 {
        let is_regretted = request
            .path
            .first()
            .is_some_and(|block| self.evicted.contains(block));
        if self.has_room || is_regretted {
            request.path.len() as u32
        } else {
            request.held_blocks
        }
    }
}

static REGRETFUL: EvictionEntry = EvictionEntry {
    name: "regretful",
    summary: "",
    source: "",
    idea: "",
    cost: "",
    avoid_when: "",
    params: &[],
    track: Track::Online,
    build: BuildEviction::Both(|_, _| {
        Box::new(Regretful {
            has_room: true,
            ..Regretful::default()
        })
    }),
};

fn regretful() -> EvictionSpec {
    EvictionSpec {
        entry: &REGRETFUL,
        params: Params::parse(&[], "").expect("nothing"),
        text: "regretful".to_owned(),
    }
}

#[test]
fn one_object_may_evict_and_admit() {
    let factory = policies::default_factory(&regretful());
    assert_eq!(
        (factory.eviction(), factory.admission()),
        ("regretful", "regretful")
    );
    let context = PolicyContext::new(config(2, EvictUnit::Block, None), 0);
    let trace = Trace::new(&asks(&["a", "b", "c", "d", "a", "d", "b"]));
    // While there is room all are admitted: c evicts a. Then only a is admitted, which was evicted, and later b.
    assert_eq!(
        trace.victims(2, factory.build(&context).as_mut()),
        ["", "", "a", "", "b", "", "c"]
    );
}

#[test]
fn a_named_admission_policy_takes_the_place_of_its_own() {
    let all = policies::admission("all").unwrap();
    let factory = policies::factory(&regretful(), &all);
    assert_eq!(
        (factory.eviction(), factory.admission()),
        ("regretful", "all")
    );
    let context = PolicyContext::new(config(2, EvictUnit::Block, None), 0);
    let trace = Trace::new(&asks(&["a", "b", "c", "d", "a"]));
    assert_eq!(
        trace.victims(2, factory.build(&context).as_mut()),
        ["", "", "a", "b", "c"]
    );
}
