#!/usr/bin/env bash
# Makes sure that guests can be built: `cargo build --target wasm32-wasip2`.
#
#   scripts/wasm-target.sh                 install the target if it is missing
#   scripts/wasm-target.sh --print-rustc   the same, then print the rustc to build guests with:
#       RUSTC=$(scripts/wasm-target.sh --print-rustc) && export RUSTC
#       cargo build --target wasm32-wasip2
#
# Silent and quick when the target is there. Otherwise it asks rustup, and where rustup's servers cannot be
# reached it builds the target's standard library from Debian's packages, under /usr/lib/rustlib.
set -euo pipefail

target=wasm32-wasip2
system=/usr/lib/rustlib     # the library folder of Debian's compiler, /usr/bin/rustc
dest=$system/$target
staged=$system/.$target.new # on the same file system as $dest, so that a rename puts it in place at once
libc_suite=trixie           # the first Debian whose wasi-libc knows wasip2

say() { echo "wasm-target: $*" >&2; }
fail() { say "$*"; exit 1; }

case "$#:${1-}" in
  0:) print=false ;;
  1:--print-rustc) print=true ;;
  *) fail "usage: $0 [--print-rustc]" ;;
esac

# The repository's rust-toolchain.toml decides which toolchain is meant, wherever the caller stands.
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
# Called through `cargo +system`: what is asked about is still the toolchain behind it.
[ "${RUSTUP_TOOLCHAIN-}" != system ] || unset RUSTUP_TOOLCHAIN
for c in rustc cargo; do command -v $c >/dev/null || fail "$c is not on the PATH: install Rust first"; done

# Looking must not download: without this rustup may fetch a whole toolchain that rust-toolchain.toml names.
find_sysroot() { sysroot=$(RUSTUP_AUTO_INSTALL=0 rustc --print sysroot 2>/dev/null) || sysroot=; }

has_std() { # has_std LIBDIR: the standard library and what links it are there
  local std=("$1"/libstd-*.rlib) c=$1/self-contained
  [ -f "${std[0]}" ] && [ -f "$c/libc.a" ] && [ -f "$c/crt1-command.o" ] && [ -f "$c/crt1-reactor.o" ]
}
tools=(rust-lld wasm-component-ld gcc-ld)
has_tools() { # has_tools SYSTEM_OR_TOOLCHAIN_LIBRARY_FOLDER
  local t
  for t in "${tools[@]}"; do [ -x "$1/$host/bin/$t" ] || return 1; done
}
# A library belongs to exactly one compiler; the stamp says which one Debian's was built by.
system_ready() {
  local version
  [ -x /usr/bin/rustc ] && has_std "$dest/lib" || return 1
  version=$(/usr/bin/rustc -vV) && host=$(sed -n 's/^host: //p' <<<"$version")
  [ "$version" = "$(cat "$dest/rustc-version" 2>/dev/null)" ] && has_tools "$system"
}

find_rustc() { # sets $rustc to the driver whose target is complete, or fails
  find_sysroot
  if [ -n "$sysroot" ] && has_std "$sysroot/lib/rustlib/$target/lib"; then rustc=$sysroot/bin/rustc
  elif system_ready; then rustc=/usr/bin/rustc
  else return 1; fi
}

ask_rustup() {
  command -v rustup >/dev/null || { said="there is no rustup"; return 1; }
  local limit=()
  ! command -v timeout >/dev/null || limit=(timeout -k 10 300)
  said=$(RUST_BACKTRACE=0 ${limit[@]+"${limit[@]}"} rustup target add "$target" 2>&1 </dev/null) || {
    said=$(sed -n 's/^error: \([^:]*\).*/\1/p' <<<"$said" | sed -n 1p)
    : "${said:=no answer in time}"
    return 1
  }
}

tmp=
quietly() { # quietly WHAT COMMAND...: its output matters only if it fails
  local what=$1
  shift
  "$@" >"$tmp/log" 2>&1 </dev/null || { tail -n 15 "$tmp/log" >&2; fail "could not $what (see above); repair that and run this again"; }
}

install_from_debian() {
  local why="rustup could not add $target (${said})"
  local next="run 'rustup target add $target' where rustup's servers are reached"
  command -v apt-get >/dev/null || fail "$why and there is no apt-get for Debian's packages instead: $next"
  [ "$(id -u)" = 0 ] || fail "$why and Debian's packages instead need root: run this once as root, or $next"
  # The Debian compiler borrows the linkers of the toolchain at hand, so there has to be one.
  [ -n "$sysroot" ] || fail "$why and the toolchain of rust-toolchain.toml is not installed: 'rustup toolchain install' it"
  host=$(rustc -vV | sed -n 's/^host: //p')
  has_tools "$sysroot/lib/rustlib" || fail "$why and $sysroot has no ${tools[*]} for Debian's compiler: install Rust with rustup"

  say "$why; building it from Debian's packages, about a minute"
  tmp=$(mktemp -d)
  trap 'rm -rf -- "$tmp" "$staged"' EXIT
  chmod 755 "$tmp" # apt downloads as a user of its own

  # Package lists in a folder of our own leave the system's as they are, even if old.
  local apt=(-qq -y -o "Dir::State::lists=$tmp/lists" -o "Dir::Cache=$tmp/cache" -o DPkg::Lock::Timeout=300)
  mkdir "$tmp/lists" "$tmp/cache" "$tmp/sources" "$tmp/deb"
  export DEBIAN_FRONTEND=noninteractive
  quietly "read Debian's package lists" apt-get "${apt[@]}" update
  # --no-remove: the packages conflict with Debian's own rustc and rustup, which are not ours to take away.
  quietly "install rustc-web and rust-web-src" \
    apt-get "${apt[@]}" install --no-install-recommends --no-remove rustc-web rust-web-src

  # wasi-libc is unpacked, not installed, from a newer suite at the place where this machine gets its own.
  local codename uri key=/usr/share/keyrings/debian-archive-keyring.gpg
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016 # $(REPO_URI) is apt's to fill in
  uri=$(apt-get "${apt[@]}" indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' \
    'Component: main' "Codename: $codename" | sed -n 1p)
  [ -n "$uri" ] || fail "no apt source is Debian's main archive of '$codename', where wasi-libc would be: add one, or $next"
  [ -f "$key" ] && key="[signed-by=$key] " || key=
  echo "deb $key$uri $libc_suite main" >"$tmp/sources/libc.list"
  rm -rf "$tmp/lists"
  mkdir "$tmp/lists"
  apt+=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$tmp/sources" -o APT::Sandbox::User=root)
  quietly "read the package list of $libc_suite" apt-get "${apt[@]}" update
  (cd "$tmp/deb" && quietly "download wasi-libc of $libc_suite" apt-get "${apt[@]}" download wasi-libc)
  quietly "unpack wasi-libc" dpkg-deb -x "$tmp"/deb/wasi-libc_*.deb "$tmp/libc"

  # Whatever an earlier run left is replaced as a whole.
  local lib=$staged/lib
  rm -rf -- "$staged"
  mkdir -p "$lib/self-contained" "$system/$host/bin"
  cp "$tmp/libc/usr/lib/$target"/{libc.a,crt1-command.o,crt1-reactor.o} "$lib/self-contained/" ||
    fail "wasi-libc of $libc_suite is not laid out as expected: $next"
  local t
  for t in "${tools[@]}"; do ln -sfn "$sysroot/lib/rustlib/$host/bin/$t" "$system/$host/bin/$t"; done

  # The standard library, as a dependency of an empty crate. Bitcode is embedded for guests with `lto = true`;
  # RUSTC_BOOTSTRAP lets a stable cargo use -Zbuild-std; cargo is run directly and here, so that neither rustup
  # nor the repository's settings have a say.
  mkdir -p "$tmp/empty/src"
  : >"$tmp/empty/src/lib.rs"
  printf '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$tmp/empty/Cargo.toml"
  (
    cd "$tmp/empty"
    unset CARGO_ENCODED_RUSTFLAGS RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Cembed-bitcode=yes
    quietly "build the standard library" "$sysroot/bin/cargo" build -Zbuild-std=std,panic_abort \
      --target "$target" --release --target-dir "$tmp/build"
  )
  rm -f "$tmp/build/$target/release/deps"/libempty-*
  cp "$tmp/build/$target/release/deps"/*.{rlib,rmeta} "$lib/"
  /usr/bin/rustc -vV >"$staged/rustc-version"
  chmod -R u=rwX,go=rX "$staged"
  rm -rf -- "$dest"
  mv -T -- "$staged" "$dest"
}

find_rustc || {
  # One at a time on a machine; whoever waited finds the work done. (A folder that always exists needs no lock file.)
  exec 9</usr/lib
  ! command -v flock >/dev/null || flock 9
  find_rustc || {
    ask_rustup || install_from_debian
    find_rustc || fail "$target is still not usable after installing it: see 'rustc --print sysroot' and $dest"
    say "$target is ready for $rustc"
  }
}
# `cargo +system` as another way to the same compiler; not needed by RUSTC=, so a failure is no matter.
if [ "$rustc" = /usr/bin/rustc ] && command -v rustup >/dev/null && [ ! -e "${RUSTUP_HOME:-$HOME/.rustup}/toolchains/system" ]; then
  rustup toolchain link system /usr >/dev/null 2>&1 || true
fi
! $print || echo "$rustc"
