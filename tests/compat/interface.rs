//! The interface only grows: whatever a released version has is in the current one, and is the same.
//!
//! What a guest imports may get more functions, interfaces and types; what it exports, and every type on the way, may not change
//! at all, because hosts and guests compare those exactly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wit_parser::{Function, Handle, InterfaceId, Resolve, Type, TypeDefKind, TypeId, WorldItem};

use crate::frozen;

/// Everything that can be named in a package, and what it is: `imports types.event.kind` is `(borrow<event>) -> string`.
type Outline = BTreeMap<String, String>;

/// What begins the names of things that may not become more either.
const EXPORTED: &str = "exports ";

fn outline(wit: &str) -> Outline {
    let mut resolve = Resolve::default();
    let package = resolve.push_source("hook.wit", wit).unwrap_or_else(|error| panic!("{error:?}"));
    let world = resolve.packages[package].worlds["guest"];
    let mut outline = Outline::new();
    for (way, items) in [("imports ", &resolve.worlds[world].imports), (EXPORTED, &resolve.worlds[world].exports)] {
        for item in items.values() {
            let &WorldItem::Interface { id, .. } = item else { panic!("the world has interfaces and nothing else") };
            describe(&resolve, id, way, &mut outline);
        }
    }
    outline
}

fn describe(resolve: &Resolve, id: InterfaceId, way: &str, outline: &mut Outline) {
    let interface = &resolve.interfaces[id];
    let name = interface.name.as_deref().expect("a named interface");
    outline.insert(format!("{way}{name}"), "interface".to_owned());
    for (item, id) in &interface.types {
        outline.insert(format!("{way}{name}.{item}"), kind(resolve, *id));
    }
    for (item, function) in &interface.functions {
        outline.insert(format!("{way}{name}.{item}"), signature(resolve, function));
    }
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let params: Vec<_> =
        function.params.iter().map(|param| format!("{}: {}", param.name, typed(resolve, &param.ty))).collect();
    let result = function.result.as_ref().map_or("nothing".to_owned(), |result| typed(resolve, result));
    format!("{:?} ({}) -> {result}", std::mem::discriminant(&function.kind), params.join(", "))
}

/// A type where it is used: named ones by their names, because what those are is in the outline, too.
fn typed(resolve: &Resolve, of: &Type) -> String {
    match of {
        Type::Id(id) => match &resolve.types[*id].name {
            Some(name) => name.clone(),
            None => kind(resolve, *id),
        },
        plain => format!("{plain:?}"),
    }
}

/// What a type is, with all its members in their order.
fn kind(resolve: &Resolve, id: TypeId) -> String {
    let optional = |of: &Option<Type>| of.as_ref().map_or("_".to_owned(), |of| typed(resolve, of));
    match &resolve.types[id].kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| format!("{}: {}", field.name, typed(resolve, &field.ty)));
            format!("record {}", fields.collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| format!("{}({})", case.name, optional(&case.ty)));
            format!("variant {}", cases.collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Enum(cases) => {
            format!("enum {}", cases.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Resource => "resource".to_owned(),
        TypeDefKind::Handle(Handle::Own(id)) => format!("own<{}>", typed(resolve, &Type::Id(*id))),
        TypeDefKind::Handle(Handle::Borrow(id)) => format!("borrow<{}>", typed(resolve, &Type::Id(*id))),
        TypeDefKind::Option(of) => format!("option<{}>", typed(resolve, of)),
        TypeDefKind::List(of) => format!("list<{}>", typed(resolve, of)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", optional(&result.ok), optional(&result.err)),
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", tuple.types.iter().map(|of| typed(resolve, of)).collect::<Vec<_>>().join(", "))
        }
        TypeDefKind::Type(of) => format!("use {}", typed(resolve, of)),
        other => panic!("the interface has no `{}` yet; teach this test", other.as_str()),
    }
}

/// What a guest for the old interface would miss in the new one.
fn broken(old: &Outline, new: &Outline) -> Vec<String> {
    let lost = old.iter().filter_map(|(name, was)| match new.get(name) {
        None => Some(format!("`{name}` is gone")),
        Some(is) if is != was => Some(format!("`{name}` was `{was}` and is `{is}`")),
        Some(_) => None,
    });
    let added = new.keys().filter(|name| name.starts_with(EXPORTED) && !old.contains_key(*name));
    lost.chain(added.map(|name| format!("`{name}` is new, and old guests do not export it"))).collect()
}

fn current() -> String {
    read("../wit/hook.wit")
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a text of this repository")
}

#[test]
fn the_interface_only_grows() {
    let new = outline(&current());
    let released = frozen(".wit");
    assert!(!released.is_empty());
    for path in released {
        let old = fs::read_to_string(&path).expect("a frozen text");
        let broken = broken(&outline(&old), &new);
        assert!(
            broken.is_empty(),
            "guests for `{}` would not load; undo this, or give the interface a line of its own:\n{}",
            path.display(),
            broken.join("\n")
        );
    }
}

#[test]
fn what_old_guests_would_miss_is_noticed_and_growth_is_not() {
    let old = current();
    for (from, to, expected) in [
        ("tool-interrupted:", "tool-stopped:", Some("`imports types.[method]event.tool-interrupted` is gone")),
        ("tool-interrupted: func() -> bool", "tool-interrupted: func() -> option<bool>", Some("and is")),
        ("max-lines: u32", "max-lines: u64", Some("`imports git.added-lines` was")),
        ("tail: func(max-bytes: u32)", "tail: func(max-bytes: u32, after: u32)", Some("`imports transcript.tail` was")),
        ("        halt(string),\n", "", Some("`imports types.decision` was")),
        ("        halt(string),\n", "        halt(string),\n        wait,\n", Some("`imports types.decision` was")),
        (
            ",\n        /// What happens to it.\n        operation: file-operation",
            "",
            Some("`imports types.tool-path` was"),
        ),
        ("        /// It is removed.\n        delete,\n", "", Some("`imports types.file-operation` was")),
        ("    @since(version = 0.1.0)\n    import git;\n", "", Some("`imports git` is gone")),
        ("\n    handle: func(", "\n    wake: func();\n    handle: func(", Some("`exports handler.wake` is new")),
        ("interface log {", "interface log {\n    flush: func();", None),
        ("resource effects {", "resource effects {\n        clear: func();", None),
    ] {
        let new = old.replace(from, to);
        assert_ne!(old, new, "{from}");
        let broken = broken(&outline(&old), &outline(&new));
        match expected {
            None => assert!(broken.is_empty(), "{to}: {broken:?}"),
            Some(expected) => assert!(broken.iter().any(|text| text.contains(expected)), "{expected}: {broken:?}"),
        }
    }
}

#[test]
fn the_sdk_carries_the_interface_as_it_is() {
    let (current, path) = (current(), "../guests/sdk/wit/hook.wit");
    if std::env::var_os("BLESS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(path), &current).expect("the copy can be written");
    }
    assert!(read(path) == current, "copy `wit/hook.wit` to `guests/sdk/wit`, or run this test with BLESS=1");
}
