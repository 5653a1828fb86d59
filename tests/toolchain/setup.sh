#!/bin/bash
# Makes the compiler for tests/programs and what the tests with AMD's own runtime need: a Debian sid system in a folder, with hipcc,
# HIP's headers, a C++ library, AMD's HIP 6.4.3, the headers of HSA and rocminfo; and beside them, in the system's /opt/hip-7.2.4, HIP
# 7.2.4 of Debian's experimental with its headers and the compiler library that it wants, for programs that name that folder.
# Quick when all is there already; adds to an older folder what it does not have. The folder's name is the only line on standard output.
#
# Usage: setup.sh [--check]     --check: only look, build nothing
# Folder: $HIPR_LAB, else ${XDG_CACHE_HOME:-$HOME/.cache}/hipr/lab (about 1.4 GB, two minutes to make)
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

packages=(hipcc libamdhip64-dev libhsa-runtime-dev rocminfo g++ libllvm22 libclang-common-22-dev)
# Unpacked, not installed: sid's are installed. What they depend on besides is among the packages above.
hip7=opt/hip-7.2.4
hip7_packages=(libamdhip64-7 libamdhip64-dev libhiprtc7 libhiprtc-builtins7 libhsa-runtime64-1 libhsa-runtime-dev libamd-comgr3)

libraries=usr/lib/x86_64-linux-gnu
files=(usr/bin/hipcc usr/bin/rocminfo usr/include/hip/hip_runtime.h usr/include/hsa/hsa.h "$libraries"/libamdhip64.so.6 "$libraries"/libLLVM.so.22.1 dev/dxg)
hip7_files=("$hip7"/usr/include/{hip/hip_runtime.h,hsa/hsa.h} "$hip7/$libraries"/lib{amdhip64.so.7,hiprtc.so.7,hsa-runtime64.so.1,amd_comgr.so.3})

# Names what is not there.
missing() {
    local file
    for file; do [ -e "$lab/$file" ] || echo "$lab/$file"; done
}

ready() { [ -z "$(missing "${files[@]}" "${hip7_files[@]}")" ] && mount_proc && in_lab hipcc --version >/dev/null 2>&1; }

[ "$(id -u)" = 0 ] || skip "needs root (chroot and mount); run it as root, or let these tests be skipped"
if ready; then
    echo "$lab"
    exit 0
fi
[ "${1:-}" != --check ] || skip "$lab does not hold the compiler and AMD's libraries, or not all"
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
leave_no_lists() { rm -rf "$sources" "$lab/$hip7.new" "$lab"/etc/apt/sources.list "$lab"/var/lib/apt/lists/* "$lab"/var/cache/apt/*.bin "$lab"/var/cache/apt/archives/*.deb "$lab"/var/log/bootstrap.log; }
trap leave_no_lists EXIT

note "making $lab or what it does not have, this takes up to two minutes"
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
{ suite_sources sid; echo; suite_sources experimental; } > "$sources"
apt_get() { in_lab apt-get -q -y -o Acquire::Check-Valid-Until=false -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root "$@" 2>&1 | hide_mirror; }
apt_get update | tail -n 1 >&2
apt_get install --no-install-recommends "${packages[@]}" | tail -n 1 >&2
# An experimental package is only taken where it is named with its release.
if [ -n "$(missing "${hip7_files[@]}")" ]; then
    rm -rf "$lab/$hip7" "$lab/$hip7.new"
    mkdir -p "$lab/$hip7.new"
    in_lab sh -c 'cd "$0" && apt-get -q -o Acquire::Retries=2 -o APT::Sandbox::User=root download "$@"' "/$hip7.new" "${hip7_packages[@]/%/=7.2.4*}" 2>&1 |
        hide_mirror | tail -n 1 >&2 || skip "Debian's experimental does not give HIP 7.2.4"
    for package in "$lab/$hip7.new"/*.deb; do
        in_lab dpkg-deb -x "${package#"$lab"}" "/$hip7.new"
        rm "$package"
    done
    rm -rf "$lab/$hip7.new/usr/share"
    mv "$lab/$hip7.new" "$lab/$hip7"
fi
# rocminfo looks for the kernel's driver before it asks the library, except where this file of another kernel's is.
: > "$lab/dev/dxg"
ready || { note "hipcc does not run in $lab, or files are missing:" $(missing "${files[@]}" "${hip7_files[@]}"); exit 1; }
note "ready: $(in_lab hipcc --version | head -n 1)"
echo "$lab"
