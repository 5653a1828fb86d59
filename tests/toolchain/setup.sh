#!/bin/bash
# Makes the compiler for tests/programs: a Debian sid system in a folder, with hipcc, HIP's headers and a C++ library.
# Quick when it is there already. The folder's name is the only line on standard output.
#
# Usage: setup.sh [--check]     --check: only look, build nothing
# Folder: $HIPR_LAB, else ${XDG_CACHE_HOME:-$HOME/.cache}/hipr/lab (about 1.5 GB, two minutes to make)
# Ends with
#   0   ready
#   77  cannot be made here (not root, not an x86-64 Debian-like system, no network; with --check: is not there): skip what needs it
#   1   something broke on the way
# The Debian mirror is the one of this machine's apt configuration.
# To remove it: umount FOLDER/proc, then rm -rf --one-file-system FOLDER.
set -eu -o pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

lab=${HIPR_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/hipr/lab}
note() { echo "toolchain: $*" >&2; }
skip() { note "$*"; exit 77; }

. "$(dirname "$0")/debian.sh"

# clang finds its own files through /proc/self/exe.
mount_proc() { [ -e "$lab/proc/self" ] || mount -t proc proc "$lab/proc"; }

ready() {
    [ -x "$lab/usr/bin/hipcc" ] && [ -e "$lab/usr/include/hip/hip_runtime.h" ] && mount_proc && in_lab hipcc --version >/dev/null 2>&1
}

[ "$(id -u)" = 0 ] || skip "needs root (chroot and mount); run it as root, or let these tests be skipped"
if ready; then
    echo "$lab"
    exit 0
fi
[ "${1:-}" != --check ] || skip "no compiler in $lab"
[ "$(uname -sm)" = "Linux x86_64" ] || skip "needs x86-64 Linux"
command -v apt-get >/dev/null || skip "needs apt-get (a Debian-like system)"

mkdir -p "$(dirname "$lab")"
exec 9>"$lab.lock"
flock 9
if ready; then # made by another process meanwhile
    echo "$lab"
    exit 0
fi
[ -n "$(mirror)" ] || skip "no Debian mirror in the apt configuration"
reachable || skip "the Debian mirror does not answer: no network"

sources=$lab/etc/apt/sources.list.d/sid.sources
leave_no_lists() { rm -rf "$sources" "$lab"/etc/apt/sources.list "$lab"/var/lib/apt/lists/* "$lab"/var/cache/apt/*.bin "$lab"/var/cache/apt/archives/*.deb "$lab"/var/log/bootstrap.log; }
trap leave_no_lists EXIT

note "making $lab, this takes about two minutes"
if [ ! -x "$lab/usr/bin/apt-get" ]; then
    command -v debootstrap >/dev/null || {
        apt-get update -q
        apt-get install -y --no-install-recommends debootstrap
    } >/dev/null 2>&1 || skip "debootstrap is not there and cannot be installed"
    debootstrap --variant=minbase --include=ca-certificates sid "$lab" "$(mirror)" 2>&1 | hide_mirror | tail -n 2 >&2
fi
mount_proc
# A mirror behind https may have a certificate that only this machine knows.
if [ -s /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt "$lab/etc/ssl/certs/"; fi
cp -L /etc/resolv.conf /etc/hosts "$lab/etc/" 2>/dev/null || true
printf '#!/bin/sh\nexit 101\n' > "$lab/usr/sbin/policy-rc.d" # start no services
chmod +x "$lab/usr/sbin/policy-rc.d"
rm -f "$lab/etc/apt/sources.list"
sid_sources > "$sources"
in_lab apt-get -q -o Acquire::Check-Valid-Until=false update 2>&1 | hide_mirror | tail -n 1 >&2
in_lab apt-get -q -y -o Dpkg::Use-Pty=0 install --no-install-recommends hipcc libamdhip64-dev g++ 2>&1 | hide_mirror | tail -n 1 >&2
ready || { note "hipcc does not run in $lab"; exit 1; }
note "ready: $(in_lab hipcc --version | head -n 1)"
echo "$lab"
