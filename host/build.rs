//! Writes the table of first-party guests: what each one is, and its compiled code.
//!
//! The code is made by `cargo xtask build` before the host is built: building guests from a build script would nest cargo.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Guests whose code is packed, which makes it half as large and costs a millisecond at each use: those whose events come once in
/// the life of a project, if ever. The others are used where they lie.
const PACKED: &[&str] = &["setup"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=OMC_HOST_AOT_DIR");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?);
    let folder = find(&out).ok_or("the first-party guests are not built yet: run `cargo xtask guests` once")?;
    println!("cargo:rerun-if-changed={}", folder.display());

    let mut about: Vec<_> =
        fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?.iter().map(fs::DirEntry::path).collect();
    about.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    about.sort();
    let mut table = String::from("&[\n");
    let mut engine = None;
    for path in about {
        println!("cargo:rerun-if-changed={}", path.display());
        engine = Some(entry(&mut table, &path, &out)?);
    }
    table.push_str("]\n");
    fs::write(out.join("first_party.rs"), table)?;
    // What the compiler calls the engine that all of them are made for: code of others has to be made for the same.
    fs::write(out.join("engine"), engine.ok_or("there is no first-party guest")?)?;
    Ok(())
}

/// One guest, as an expression of type `Embedded`. Returns the name of its engine.
fn entry(table: &mut String, about: &Path, out: &Path) -> Result<String, Box<dyn Error>> {
    let code = about.with_extension("cwasm");
    println!("cargo:rerun-if-changed={}", code.display());
    let facts: Value = serde_json::from_slice(&fs::read(about)?)?;
    let manifest = &facts["manifest"];
    let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("the description of a guest lacks a text");
    writeln!(table, "Embedded {{")?;
    writeln!(table, "name: {:?}, version: {:?},", text(&manifest["name"])?, text(&manifest["version"])?)?;
    writeln!(table, "digest: {:?}, manifest: {:?},", text(&facts["digest"])?, manifest.to_string())?;
    writeln!(
        table,
        "imports: &{:?},",
        facts["imports"].as_array().ok_or("no imports")?.iter().map(text).collect::<Result<Vec<_>, _>>()?
    )?;
    writeln!(table, "enabled: {},", manifest["enabled"] != false)?;
    writeln!(table, "subscriptions: &[")?;
    for subscription in manifest["subscriptions"].as_array().ok_or("no subscriptions")? {
        let (event, order) = (text(&subscription["event"])?, &subscription["order"]);
        writeln!(
            table,
            "Wanted {{ event: {event:?}, matcher: {:?}, order: {order}, when: &{:?} }},",
            subscription["matcher"].as_str(),
            subscription["when"]
                .as_array()
                .map_or(&[][..], Vec::as_slice)
                .iter()
                .map(text)
                .collect::<Result<Vec<_>, _>>()?
        )?;
    }
    let name = text(&manifest["name"])?;
    if PACKED.contains(&name.as_str()) {
        let (bytes, packed) = (fs::read(&code)?, out.join(name).with_extension("packed"));
        fs::write(&packed, lz4_flex::block::compress(&bytes))?;
        let packed = packed.display().to_string();
        writeln!(
            table,
            "], code: EmbeddedCode::Packed {{ packed: include_bytes!({packed:?}), bytes: {} }} }},",
            bytes.len()
        )?;
    } else {
        let code = code.display().to_string();
        writeln!(table, "], code: EmbeddedCode::InPlace(&Aligned(*include_bytes!({code:?}))) }},")?;
    }
    text(&facts["engine"])
        .map_err(|_| "the first-party guests were built by an older compiler: run `cargo xtask guests`".into())
}

/// The folder with the compiled guests: the one that xtask names, else the one below the target folder.
fn find(out: &Path) -> Option<PathBuf> {
    if let Some(named) = env::var_os("OMC_HOST_AOT_DIR") {
        return Some(PathBuf::from(named));
    }
    let target = env::var_os("TARGET")?;
    out.ancestors().map(|ancestor| ancestor.join("aot").join(&target)).find(|folder| folder.is_dir())
}
