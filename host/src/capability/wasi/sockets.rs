//! `wasi:sockets`: there to be linked against, with every way in denied.
//!
//! Language runtimes import these interfaces whether or not a guest uses them. The functions that would create a socket or look up
//! a name answer `access-denied` and leave an entry in the record; no other function can be reached, because all of them need what
//! those would have given. So none needs bindings: they are linked by name, from the table below.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType, Val};

use super::usage::Reason;
use super::{WasiView, version};

/// The handle that sockets are asked for with. It carries nothing and opens nothing.
struct Network;

/// A resource that only a denied function could give.
enum Never {}

/// One interface: functions that answer `access-denied`, resources that never exist, and their methods.
struct Interface {
    name: &'static str,
    denied: &'static [&'static str],
    resources: &'static [&'static str],
    unreachable: &'static [&'static str],
}

const INTERFACES: [Interface; 5] = [
    Interface {
        name: "wasi:sockets/tcp-create-socket",
        denied: &["create-tcp-socket"],
        resources: &[],
        unreachable: &[],
    },
    Interface {
        name: "wasi:sockets/udp-create-socket",
        denied: &["create-udp-socket"],
        resources: &[],
        unreachable: &[],
    },
    Interface {
        name: "wasi:sockets/ip-name-lookup",
        denied: &["resolve-addresses"],
        resources: &["resolve-address-stream"],
        unreachable: &[
            "[method]resolve-address-stream.resolve-next-address",
            "[method]resolve-address-stream.subscribe",
        ],
    },
    Interface {
        name: "wasi:sockets/tcp",
        denied: &[],
        resources: &["tcp-socket"],
        unreachable: &[
            "[method]tcp-socket.start-bind",
            "[method]tcp-socket.finish-bind",
            "[method]tcp-socket.start-connect",
            "[method]tcp-socket.finish-connect",
            "[method]tcp-socket.start-listen",
            "[method]tcp-socket.finish-listen",
            "[method]tcp-socket.accept",
            "[method]tcp-socket.local-address",
            "[method]tcp-socket.remote-address",
            "[method]tcp-socket.is-listening",
            "[method]tcp-socket.address-family",
            "[method]tcp-socket.set-listen-backlog-size",
            "[method]tcp-socket.keep-alive-enabled",
            "[method]tcp-socket.set-keep-alive-enabled",
            "[method]tcp-socket.keep-alive-idle-time",
            "[method]tcp-socket.set-keep-alive-idle-time",
            "[method]tcp-socket.keep-alive-interval",
            "[method]tcp-socket.set-keep-alive-interval",
            "[method]tcp-socket.keep-alive-count",
            "[method]tcp-socket.set-keep-alive-count",
            "[method]tcp-socket.hop-limit",
            "[method]tcp-socket.set-hop-limit",
            "[method]tcp-socket.receive-buffer-size",
            "[method]tcp-socket.set-receive-buffer-size",
            "[method]tcp-socket.send-buffer-size",
            "[method]tcp-socket.set-send-buffer-size",
            "[method]tcp-socket.subscribe",
            "[method]tcp-socket.shutdown",
        ],
    },
    Interface {
        name: "wasi:sockets/udp",
        denied: &[],
        resources: &["udp-socket", "incoming-datagram-stream", "outgoing-datagram-stream"],
        unreachable: &[
            "[method]udp-socket.start-bind",
            "[method]udp-socket.finish-bind",
            "[method]udp-socket.stream",
            "[method]udp-socket.local-address",
            "[method]udp-socket.remote-address",
            "[method]udp-socket.address-family",
            "[method]udp-socket.unicast-hop-limit",
            "[method]udp-socket.set-unicast-hop-limit",
            "[method]udp-socket.receive-buffer-size",
            "[method]udp-socket.set-receive-buffer-size",
            "[method]udp-socket.send-buffer-size",
            "[method]udp-socket.set-send-buffer-size",
            "[method]udp-socket.subscribe",
            "[method]incoming-datagram-stream.receive",
            "[method]incoming-datagram-stream.subscribe",
            "[method]outgoing-datagram-stream.check-send",
            "[method]outgoing-datagram-stream.send",
            "[method]outgoing-datagram-stream.subscribe",
        ],
    },
];

const NETWORK: &str = "wasi:sockets/network";
const INSTANCE_NETWORK: &str = "wasi:sockets/instance-network";

/// Whether there is an interface of this name, without version.
pub(super) fn has_interface(name: &str) -> bool {
    [NETWORK, INSTANCE_NETWORK].contains(&name) || INTERFACES.iter().any(|interface| interface.name == name)
}

/// Links those socket interfaces that are imported.
pub(super) fn add_to_linker<T: WasiView + 'static>(
    linker: &mut Linker<T>,
    imported: &dyn Fn(&str) -> bool,
) -> wasmtime::Result<()> {
    if imported(NETWORK) {
        linker.instance(&version(NETWORK))?.resource("network", ResourceType::host::<Network>(), drop_network)?;
    }
    if imported(INSTANCE_NETWORK) {
        linker.instance(&version(INSTANCE_NETWORK))?.func_wrap("instance-network", network)?;
    }
    for interface in INTERFACES.iter().filter(|interface| imported(interface.name)) {
        let mut instance = linker.instance(&version(interface.name))?;
        for resource in interface.resources {
            instance.resource(resource, ResourceType::host::<Never>(), |_, _| Ok(()))?;
        }
        for &function in interface.denied {
            deny(&mut instance, function)?;
        }
        for &function in interface.unreachable {
            instance.func_new(function, move |_, _, _, _| {
                Err(wasmtime::format_err!("`{function}` was called on a socket that cannot exist"))
            })?;
        }
    }
    Ok(())
}

/// Links a function of type `func(…) -> result<…, error-code>` that always fails.
fn deny<T: WasiView + 'static>(instance: &mut LinkerInstance<'_, T>, function: &'static str) -> wasmtime::Result<()> {
    instance.func_new(function, move |mut store: StoreContextMut<'_, T>, _, arguments, results| {
        store.data_mut().wasi().usage.note_refusal(Reason::Network, function);
        for argument in arguments {
            // What was lent for the call has to be given back, or the call traps.
            if let Val::Resource(lent) = argument {
                lent.resource_drop(&mut store)?;
            }
        }
        if let Some(result) = results.first_mut() {
            *result = Val::Result(Err(Some(Box::new(Val::Enum("access-denied".to_owned())))));
        }
        Ok(())
    })
}

fn network<T: WasiView>(mut store: StoreContextMut<'_, T>, (): ()) -> wasmtime::Result<(Resource<Network>,)> {
    Ok((store.data_mut().wasi().table.push(Network)?,))
}

fn drop_network<T: WasiView>(mut store: StoreContextMut<'_, T>, rep: u32) -> wasmtime::Result<()> {
    store.data_mut().wasi().table.delete(Resource::<Network>::new_own(rep))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_has_every_stable_item_of_the_standard() {
        let mut interface = String::new();
        let mut resource = None;
        let mut unstable = false;
        let mut expected = BTreeSet::new();
        for line in include_str!("../../../wit/deps/sockets.wit").lines().map(str::trim) {
            if line.starts_with("///") {
            } else if line.starts_with("@unstable") {
                unstable = true;
            } else if let Some(name) = line.strip_prefix("interface ") {
                interface = format!("wasi:sockets/{}", name.trim_end_matches(" {"));
                resource = None;
            } else if let Some(name) = line.strip_prefix("resource ") {
                let name = name.trim_end_matches([';', ' ', '{']);
                expected.insert((interface.clone(), name.to_owned()));
                resource = line.ends_with('{').then(|| name.to_owned());
            } else if line == "}" {
                resource = None;
            } else if let Some((name, _)) = line.split_once(": func(") {
                let name = name.trim_start_matches('%');
                if !std::mem::take(&mut unstable) {
                    let name = resource.as_ref().map_or(name.to_owned(), |of| format!("[method]{of}.{name}"));
                    expected.insert((interface.clone(), name));
                }
            } else if line.starts_with("use ") {
                unstable = false;
            }
        }
        let mut actual = BTreeSet::from([
            (NETWORK.to_owned(), "network".to_owned()),
            (INSTANCE_NETWORK.to_owned(), "instance-network".to_owned()),
        ]);
        for interface in &INTERFACES {
            for list in [interface.denied, interface.resources, interface.unreachable] {
                actual.extend(list.iter().map(|&item| (interface.name.to_owned(), item.to_owned())));
            }
        }
        assert_eq!(actual, expected);
    }
}
