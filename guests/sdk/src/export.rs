//! The macro that turns a [`Guest`] into a component, and what it expands to.

use std::marker::PhantomData;

use crate::bindings::exports::omc::hook::handler;
use crate::bindings::omc::hook::types;
use crate::{Decision, Effects, Event, Guest};

/// Exports a guest and embeds its manifest as the custom section `omc:manifest`.
///
/// In the guest's own tests it stands for one more: that the manifest can be read.
///
/// The manifest is written as JSON; name and version come from the crate's `Cargo.toml`. A name is 1 to 64 of `a-z`, `0-9` and
/// `-`, and starts with a letter. The members:
///
/// | member | meaning |
/// |---|---|
/// | `description` | one line for people |
/// | `enabled` | `false` if the guest is to be off until the operator switches it on |
/// | `subscriptions` | `{"event", "matcher"?, "order"?, "when"?}` each; the matcher is a name, a list `A\|B`, or a regular expression (without look-around) that matches somewhere; lower orders come first; `when` see below |
/// | `requests` | `{"capability", "scope"?, "reason"}` each, see below |
/// | `limits` | wishes, optional: `{"fuel"?, "memory-bytes"?, "deadline-ms"?}`; the operator's limits bind |
///
/// A guest that has nothing to do should not even be loaded: that is most of what an event costs. `when` lists conditions, and the
/// guest is called if one of them holds: `file:/omc/PATH` (it exists in the `.omc` directory; a part `{session}` is the event's
/// session, and the last part may hold `*`), `read:project:PATH` or `read:agent:PATH` (it exists there), `near:PATH` (it exists
/// beside a file that the tool call names, or in a folder above it up to the project's root), `payload:TEXT` (a text of the event
/// contains it, in any case of ASCII letters), `setting:KEY` (the user switched it on). What the host looks at for a guest must be
/// covered by what the guest requests; what is not granted, or cannot be told, holds.
///
/// Capabilities: `omc` (scope: `ro:` or `rw:` and a path below `/omc` or `/omc-user`), `read` (scope: `project:`, `agent:` or
/// `home:` and a glob), `transcript`, `git`, `env` and `session-environment` (scope: names), and the grants `allow`, `halt`,
/// `update-input`.
#[macro_export]
macro_rules! export {
    ($guest:ty, { $($manifest:tt)* }) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "exporting functions and sections needs unsafe attributes")]
        const _: () = {
            const MANIFEST: &str = concat!(
                "{\"name\":\"", env!("CARGO_PKG_NAME"), "\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\",",
                stringify!($($manifest)*),
                "}"
            );
            #[unsafe(link_section = "omc:manifest")]
            #[used]
            static SECTION: [u8; MANIFEST.len()] = $crate::section(MANIFEST);

            type Exported = $crate::Adapter<$guest>;
            $crate::bindings::export!(Exported with_types_in $crate::bindings);
        };

        #[cfg(all(test, not(target_arch = "wasm32")))]
        #[test]
        fn the_manifest_can_be_read() {
            $crate::testing::check_manifest(
                env!("CARGO_PKG_NAME"),
                concat!("{", stringify!($($manifest)*), "}"),
            );
        }

        // Natively there is nobody to export to, and linkers do not take the names of a component's exports.
        #[cfg(not(target_arch = "wasm32"))]
        const _: () = $crate::exports::<$guest>();
    };
}

/// Checks natively that a type can be exported.
#[doc(hidden)]
pub const fn exports<G: Guest>() {}

/// The bytes of a text, as an array that a static can hold.
#[doc(hidden)]
pub const fn section<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut array = [0; N];
    let mut at = 0;
    while at < N {
        array[at] = bytes[at];
        at += 1;
    }
    array
}

/// Speaks the generated interface on one side and [`Guest`] on the other.
#[doc(hidden)]
#[derive(Debug)]
pub struct Adapter<G>(PhantomData<G>);

impl<G: Guest> handler::Guest for Adapter<G> {
    fn handle(event: &types::Event, effects: &types::Effects) -> Result<handler::Decision, String> {
        match G::handle(&Event::from_host(event), &mut Effects::from_host(effects)) {
            Ok(decision) => Ok(decision.into()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl From<Decision> for types::Decision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Pass => Self::Pass,
            Decision::Allow => Self::Allow,
            Decision::Ask(reason) => Self::Ask(reason),
            Decision::Block(reason) => Self::Block(reason),
            Decision::Halt(reason) => Self::Halt(reason),
        }
    }
}
