//! A stranger's component on its way through the compiler.

use std::env;
use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use omc_artifact::{CacheEntry, Component, MAX_SEAL_BYTES, Seal};

use crate::scratch::with_folder;

/// Compiles what can be taken for a component with the compiler that the variable `OMC_TEST_COMPILER` names; without it, nothing.
/// The compiler is a program of its own, because nothing that is linked with the host may hold one.
///
/// Promises: it ends by itself, with code and its seal or with an error that says why, and leaves no draft behind.
pub fn compile(bytes: &[u8]) {
    let (Some(compiler), Ok(component)) = (env::var_os("OMC_TEST_COMPILER"), Component::read(bytes)) else { return };
    with_folder(|folder| {
        let source = folder.join(&component.digest).with_extension("wasm");
        fs::write(&source, bytes).expect("a file");
        let cache = folder.join("cache");
        fs::create_dir_all(&cache).expect("a folder");
        let mut command = Command::new(&compiler);
        command.arg("cache").arg(&cache).arg(&source).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        let output = command.stderr(Stdio::piped()).output().expect("the compiler starts");
        let entry = CacheEntry { folder: cache.clone(), component: component.digest };
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {
                let mut seal = String::new();
                let file = fs::File::open(entry.seal()).expect("a seal");
                file.take(MAX_SEAL_BYTES).read_to_string(&mut seal).expect("a text");
                assert!(Seal::parse(&seal).is_some() && entry.code().is_file(), "{seal}");
            }
            Some(1) => assert!(said.starts_with("omc-compiler: ") && entry.failure().is_file(), "{said}"),
            _ => panic!("the compiler ended with {}: {said}", output.status),
        }
        let drafts =
            fs::read_dir(&cache).expect("a folder").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        assert_eq!(
            drafts.filter(|name| std::path::Path::new(name).extension().is_some_and(|end| end == "tmp")).count(),
            0
        );
        fs::remove_dir_all(&cache).expect("ours");
        fs::remove_file(&source).expect("ours");
    });
}
