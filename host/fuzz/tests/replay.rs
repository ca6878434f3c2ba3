//! Every target over its seeds and over the inputs that once broke it.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use omc_fuzz::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The files of a folder; none if it is not there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
    files.sort();
    files
}

#[test]
fn no_known_input_breaks_a_promise() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let seeds = files(&folder("seeds").join(name));
        assert!(!seeds.is_empty(), "`{name}` has no seeds");
        for path in seeds.into_iter().chain(files(&folder("kept").join(name))) {
            let input = fs::read(&path).expect("an input can be read");
            // What was cut off or changed in one place is where most faults are found.
            for input in [&input[..], &input[..input.len() / 2], &input[input.len() / 3..]] {
                if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
                    broken.push(path.display().to_string());
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_target_has_an_entry_point_and_no_folder_is_without_a_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stems = |name: &str| -> BTreeSet<String> {
        let stem = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
        files(&folder(name)).iter().filter_map(stem).collect()
    };
    assert_eq!(stems("fuzz_targets"), targets);
    assert_eq!(stems("seeds"), targets);
    assert!(stems("kept").is_subset(&targets));
    for (name, _) in TARGETS {
        let entry = fs::read_to_string(folder("fuzz_targets").join(name).with_extension("rs")).expect("an entry point");
        assert!(entry.contains(&format!("omc_fuzz::{name}(data)")), "`{name}` calls another target");
    }
}
