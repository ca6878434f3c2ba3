//! A component's bytes, looked at without running them: manifest, imports, digest.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use wasmparser::{Encoding, Parser, Payload};

use crate::manifest::{MANIFEST_SECTION, Manifest, ManifestError};

/// Largest component that is read, in bytes: a Python guest with its interpreter is about 20 MB.
pub const MAX_COMPONENT_BYTES: usize = 128 * 1024 * 1024;

/// What can be known of a component without running it.
#[derive(Clone, Debug)]
pub struct Component {
    /// What it says about itself.
    pub manifest: Manifest,
    /// The interfaces it imports, as written in the binary, sorted: the second witness of what it may want.
    pub imports: Vec<String>,
    /// What it exports, as written in the binary, sorted.
    pub exports: Vec<String>,
    /// SHA-256 of all its bytes, in lower-case hex.
    pub digest: String,
}

/// Why the bytes are no guest.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// They are a core module; a guest is a component.
    #[error("this is a core WebAssembly module, and a guest is a component; build it for `wasm32-wasip2`")]
    CoreModule,
    /// They are too many.
    #[error("it has {0} bytes, and a guest at most {MAX_COMPONENT_BYTES}")]
    TooLarge(u64),
    /// There is nothing.
    #[error("the file is empty")]
    Empty,
    /// They are not WebAssembly, for this reason.
    #[error("this is not a WebAssembly component: {0}")]
    Wasm(String),
    /// The manifest is missing or not accepted.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It is a folder, a pipe, a device: nothing that has an end.
    #[error("it is not a regular file")]
    NotAFile,
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
}

impl From<wasmparser::BinaryReaderError> for ComponentError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        // Some of its messages show bytes in a column, and a reason is a part of a sentence.
        Self::Wasm(error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Component {
    /// Reads a component from a file, and returns its bytes as well. A file that is too large is refused before it is read.
    ///
    /// # Errors
    ///
    /// Every reason for which a file is no guest: see [`ComponentError`].
    pub fn load(path: &Path) -> Result<(Self, Vec<u8>), ComponentError> {
        let bytes = Self::bytes(path)?;
        Ok((Self::read(&bytes)?, bytes))
    }

    /// Reads the bytes of a file that may be a component. One that is too large is refused before it is read.
    ///
    /// # Errors
    ///
    /// Those of [`ComponentError`] that are about the file.
    pub fn bytes(path: &Path) -> Result<Vec<u8>, ComponentError> {
        // Before it is opened: opening a pipe would wait for its other end.
        if !fs::metadata(path)?.is_file() {
            return Err(ComponentError::NotAFile);
        }
        let file = fs::File::open(path)?;
        let size = file.metadata()?.len();
        if size > MAX_COMPONENT_BYTES as u64 {
            return Err(ComponentError::TooLarge(size));
        }
        let mut bytes = Vec::new();
        // One byte over the limit, should it grow meanwhile.
        file.take(MAX_COMPONENT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a component.
    ///
    /// The manifest is the one custom section `omc:manifest`: at the component's top level if it is there (where a packer puts
    /// it), else inside the core modules (where a linker leaves it). Two at the level that counts are an error, so that no
    /// reader can be shown another manifest than the host acts on.
    ///
    /// # Errors
    ///
    /// Every reason for which a file is no guest: see [`ComponentError`].
    pub fn read(bytes: &[u8]) -> Result<Self, ComponentError> {
        if bytes.len() > MAX_COMPONENT_BYTES {
            return Err(ComponentError::TooLarge(bytes.len() as u64));
        }
        if bytes.is_empty() {
            return Err(ComponentError::Empty);
        }
        let (mut imports, mut exports) = (Vec::new(), Vec::new());
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(ComponentError::CoreModule);
                }
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        exports.push(export?.name.name.to_owned());
                    }
                }
                Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => {
                    if depth == 0 { &mut outer } else { &mut inner }.push(section.data());
                }
                _ => {}
            }
        }
        let sections = if outer.is_empty() { inner } else { outer };
        let manifest = match sections.as_slice() {
            [] => return Err(ManifestError::Missing.into()),
            [one] => Manifest::parse(one)?,
            _ => return Err(ManifestError::Several.into()),
        };
        imports.sort_unstable();
        exports.sort_unstable();
        Ok(Self { manifest, imports, exports, digest: hex(&Sha256::digest(bytes)) })
    }
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{"name": "a", "version": "1", "subscriptions": []}"#;

    #[test]
    fn a_file_that_is_too_large_is_refused_unread_and_one_without_an_end_unopened() {
        let folder = tempfile::tempdir().unwrap();
        let huge = folder.path().join("huge");
        // Mostly a hole: what would be read is not even there.
        fs::File::create(&huge).unwrap().set_len(300 << 20).unwrap();
        let began = std::time::Instant::now();
        assert!(matches!(Component::load(&huge), Err(ComponentError::TooLarge(size)) if size == 300 << 20));
        assert!(began.elapsed() < std::time::Duration::from_millis(50), "{:?}", began.elapsed());
        assert!(matches!(Component::load(folder.path()), Err(ComponentError::NotAFile)));
        #[cfg(unix)]
        assert!(matches!(Component::load(Path::new("/dev/zero")), Err(ComponentError::NotAFile)));
        let small = folder.path().join("small");
        fs::write(&small, component(&[], &[MANIFEST])).unwrap();
        assert_eq!(Component::load(&small).unwrap().0.manifest.name, "a");
    }

    /// A component with these custom sections at its top level, and these in a core module inside.
    fn component(outer: &[&str], inner: &[&str]) -> Vec<u8> {
        let custom = |text: &str| {
            let mut section = vec![u8::try_from(MANIFEST_SECTION.len()).unwrap()];
            section.extend_from_slice(MANIFEST_SECTION.as_bytes());
            section.extend_from_slice(text.as_bytes());
            framed(0, &section)
        };
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        for text in inner {
            module.extend(custom(text));
        }
        let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
        bytes.extend(framed(1, &module));
        for text in outer {
            bytes.extend(custom(text));
        }
        bytes
    }

    /// A section: its kind, its length in two LEB128 bytes, its content.
    fn framed(kind: u8, content: &[u8]) -> Vec<u8> {
        let low = u8::try_from(content.len() % 128).expect("a remainder of 128 fits") | 0x80;
        let high = u8::try_from(content.len() / 128).expect("a test's section is short");
        [&[kind, low, high], content].concat()
    }

    #[test]
    fn the_manifest_is_found_inside_and_a_packed_one_outside_wins() {
        assert_eq!(Component::read(&component(&[], &[MANIFEST])).unwrap().manifest.name, "a");
        let packed = MANIFEST.replace("\"a\"", "\"b\"");
        assert_eq!(Component::read(&component(&[&packed], &[MANIFEST])).unwrap().manifest.name, "b");
    }

    #[test]
    fn two_manifests_are_no_manifest() {
        for bytes in [component(&[MANIFEST, MANIFEST], &[]), component(&[], &[MANIFEST, MANIFEST])] {
            let error = Component::read(&bytes).unwrap_err();
            assert!(matches!(error, ComponentError::Manifest(ManifestError::Several)), "{error}");
        }
    }

    #[test]
    fn what_is_no_component_is_refused_with_its_reason() {
        let reason = |bytes: &[u8]| Component::read(bytes).unwrap_err().to_string();
        assert!(reason(b"").contains("empty"));
        assert!(reason(b"garbage").contains("not a WebAssembly component"));
        assert!(reason(b"\0asm\x01\0\0\0").contains("core WebAssembly module"));
        assert!(reason(&component(&[], &[])).contains("no `omc:manifest` section"));
        let whole = component(&[], &[MANIFEST]);
        for length in 0..whole.len() {
            assert!(Component::read(&whole[..length]).is_err(), "{length} bytes of it");
        }
    }
}
