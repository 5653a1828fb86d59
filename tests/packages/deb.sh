#!/usr/bin/env bash
# Tests the Debian package: lintian has nothing to say of it, and in a fresh Debian system it is installed, used, upgraded, removed
# and purged, after which the system is as before. Needs root, a Debian-like system and its network.
#
# Usage: deb.sh PACKAGE.deb
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../toolchain/debian.sh"
package=$(realpath "$1")
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

step() { echo "deb: $*"; }
fail() { echo "deb: $*" >&2; exit 1; }

need lintian debootstrap
step "lintian"
lintian --allow-root --fail-on error,warning "$package"

folder=$(mktemp -d)
system=$folder/system
cleanup() {
    mountpoint -q "$system/proc" && umount "$system/proc"
    rm -rf --one-file-system "$folder"
}
trap cleanup EXIT
step "a fresh Debian system"
small_system bookworm "$system" systemd,bash-completion || fail "debootstrap failed"
mount -t proc proc "$system/proc"
cp -L /etc/resolv.conf /etc/hosts "$system/etc/" 2>/dev/null || true
printf '#!/bin/sh\nexit 101\n' >"$system/usr/sbin/policy-rc.d" # start no services
chmod +x "$system/usr/sbin/policy-rc.d"

inside() { chroot "$system" "$@"; }
as_nobody() { inside su nobody -s /bin/sh -c "cd /tmp && HOME=/tmp $1"; }
# What a package must not leave: all files but those in which the system keeps its books, and what users are made of.
files() {
    inside find / -xdev \( -path /proc -o -path /run -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/dpkg -o -path /var/lib/apt \
        -o -path /root \) -prune -o -print | grep -Ev '^/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?$|/__pycache__' | sort
}
files >"$folder/before"

install() {
    cp "$1" "$system/tmp/hipr.deb"
    inside apt-get install -qy --no-install-recommends /tmp/hipr.deb >"$folder/log" 2>&1 || { hide_mirror <"$folder/log" >&2; fail "it cannot be installed"; }
    rm "$system/tmp/hipr.deb"
}
inside apt-get update -q >/dev/null 2>&1

step "install"
install "$package"
version=$(inside hipr --version)
as_nobody hipr | grep -q 'All 8 kernels computed what the CPU computes' || fail "the demo is wrong"
as_nobody 'hipr run -- sh -c "test -e \${LD_LIBRARY_PATH%%:*}/libamdhip64.so.7"' || fail "hipr run does not find the library"
as_nobody 'hipr hsa -- sh -c "test -e \${LD_LIBRARY_PATH%%:*}/libhsa-runtime64.so.1"' || fail "hipr hsa does not find the library"
inside bash -c '. /usr/share/bash-completion/bash_completion && _completion_loader hipr; complete -p hipr' >/dev/null || fail "bash has no completions"
[[ -s $system/usr/share/man/man1/hipr-worker.1.gz ]] || fail "there is no manual page"

step "the service"
inside systemd-analyze verify hipr-worker.service || fail "systemd does not take the service"
[[ $(inside systemctl is-enabled hipr-worker || true) == disabled ]] || fail "the service starts by itself"
inside getent passwd hipr | grep -q ':/nonexistent:/usr/sbin/nologin$' || fail "the service has no user, or one that can log in"
chroot "$system" setpriv --reuid hipr --regid hipr --clear-groups hipr worker --device sim --listen unix:/tmp/hipr-worker >/dev/null 2>&1 &
worker=$!
for ((n = 0; n < 600; n++)); do [[ -S $system/tmp/hipr-worker ]] && break; sleep 0.1; done
inside hipr info --worker unix:/tmp/hipr-worker | grep -q 'MI300X (hipr emulated)' || fail "a worker that runs as the user does not answer"
kill "$worker"
wait "$worker" || fail "the worker does not end well"

step "upgrade"
echo 'HIPR_WORKER_OPTIONS=--memory-max 1G' >"$system/etc/default/hipr-worker"
inside systemctl enable --quiet hipr-worker
dpkg-deb -R "$package" "$folder/newer"
sed -i 's/^Version: .*/&.1/' "$folder/newer/DEBIAN/control"
dpkg-deb -b "$folder/newer" "$folder/newer.deb" >/dev/null
install "$folder/newer.deb"
[[ $(inside dpkg-query -W -f '${Version}' hipr) == *.1 ]] || fail "the upgrade is not installed"
[[ $(inside hipr --version) == "$version" ]] || fail "the program does not run after the upgrade"
grep -q 'memory-max 1G' "$system/etc/default/hipr-worker" || fail "the upgrade has changed what its owner configured"
[[ $(inside systemctl is-enabled hipr-worker) == enabled ]] || fail "the upgrade has disabled the service"

step "remove"
inside apt-get remove -qy hipr >/dev/null 2>&1
[[ ! -e $system/usr/bin/hipr && ! -e $system/usr/lib/hipr ]] || fail "files are left after it was removed"
grep -q 'memory-max 1G' "$system/etc/default/hipr-worker" || fail "removing it has removed what its owner configured"
inside apt-get purge -qy hipr >/dev/null 2>&1
files >"$folder/after"
diff "$folder/before" "$folder/after" >&2 || fail "the system is not as before (<: is missing, >: is left)"
step "all right: $version"
