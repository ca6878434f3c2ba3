//! The host's side of `omc:hook@0.1`, written by the engine's macro from `wit/`.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "written by a macro")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "omc:hook/guest",
    imports: { default: trappable },
    with: {
        "omc:hook/types.event": crate::capability::EventHandle,
        "omc:hook/types.effects": crate::capability::EffectsHandle,
        "omc:hook/state-lock.lock": crate::capability::LockHandle,
    },
    require_store_data_send: true,
});
