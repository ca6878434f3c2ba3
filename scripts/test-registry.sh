#!/usr/bin/env bash
# Prints the path of an OCI registry for tests: docker-registry of this machine, or Debian's, unpacked into a folder.
#
#   scripts/test-registry.sh FOLDER
#
# Nothing is installed and no service is started; downloading needs apt. Silent and quick when it is there.
set -euo pipefail

fail() { echo "test-registry: $*" >&2; exit 1; }
[ $# = 1 ] || fail "usage: $0 FOLDER"
folder=$1
program=$folder/usr/bin/docker-registry

if found=$(command -v docker-registry); then echo "$found"; exit; fi
if [ ! -x "$program" ]; then
  command -v apt-get >/dev/null || fail "install docker-registry (https://distribution.github.io/distribution) and run this again"
  mkdir -p "$folder"
  tmp=$(mktemp -d)
  trap 'rm -rf -- "$tmp"' EXIT
  chmod 755 "$tmp" # apt downloads as a user of its own
  # Package lists in a folder of our own leave the system's as they are, even if old.
  apt=(-qq -o "Dir::State::lists=$tmp/lists" -o "Dir::Cache=$tmp/cache" -o APT::Sandbox::User=root)
  mkdir "$tmp/lists" "$tmp/cache" "$tmp/deb"
  { apt-get "${apt[@]}" update && cd "$tmp/deb" && apt-get "${apt[@]}" download docker-registry; } >"$tmp/log" 2>&1 </dev/null ||
    { tail -n 15 "$tmp/log" >&2; fail "Debian's docker-registry could not be downloaded (see above); install it and run this again"; }
  dpkg-deb -x "$tmp"/deb/docker-registry_*.deb "$tmp/unpacked"
  # In place at once, for a second one of these that runs now.
  mkdir -p "$folder/usr/bin"
  cp "$tmp/unpacked/usr/bin/docker-registry" "$program.$$"
  mv -- "$program.$$" "$program"
fi
echo "$program"
