//! The puppet with another manifest, as a packer puts one on.

use std::fs;

use serde_json::Value;

use crate::world::component;

/// The puppet's component with a manifest at its top level, which wins over the one inside.
pub(crate) fn with_manifest(manifest: &Value) -> Vec<u8> {
    let mut bytes = fs::read(component("puppet")).expect("the puppet is built");
    let (name, text) = ("omc:manifest", manifest.to_string());
    let mut content = leb128(name.len());
    content.extend([name.as_bytes(), text.as_bytes()].concat());
    bytes.push(0);
    bytes.extend(leb128(content.len()));
    bytes.extend(content);
    bytes
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number % 128).expect("a remainder of 128 fits");
        number /= 128;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return bytes;
        }
    }
}
