#!/bin/bash
# Unpacks packages of Debian sid into a folder, with those that they need and the compiler's system (setup.sh) does not have. Nothing
# is installed, and documentation is left out. Prints each package with its version.
#
# Usage: unpack.sh SYSTEM FOLDER [--exclude=PATTERN ...] PACKAGE ...     --exclude: files that are left out, as tar names them
# Ends with
#   0   unpacked
#   77  not to be had here: no network, or the packages need a newer system
set -eu -o pipefail
export LC_ALL=C

lab=$1 folder=$2
shift 2
. "$(dirname "$0")/debian.sh"
skip() { echo "unpack: $*" >&2; exit 77; }
leave_out=(--exclude=./usr/share)
while [[ $1 == --exclude=* ]]; do leave_out+=("$1") && shift; done

[ -n "$(mirror)" ] || skip "no Debian mirror in the apt configuration"
work=$(mktemp -d "$lab/tmp/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
# Lists and archives of its own: the system stays as it is.
mkdir -p "$work"/{parts,lists/partial,cache/archives/partial} "$folder"
suite_sources sid > "$work/parts/sid.sources"
inside=/tmp/${work##*/}
apt_get() {
    in_lab apt-get -q -y -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$inside/parts" -o Dir::State::lists="$inside/lists" \
        -o Dir::Cache="$inside/cache" -o Acquire::Check-Valid-Until=false -o Acquire::Retries=2 -o APT::Sandbox::User=root \
        -o Dpkg::Use-Pty=0 --no-install-recommends "$@" 2>&1
}
apt_get update >/dev/null || skip "the Debian mirror does not answer: no network"
plan=$(apt_get --simulate install "$@") || skip "not among Debian's packages: $*"
! grep -q '^Inst [^ ]* \[' <<< "$plan" || skip "the system in $lab is older than these packages; without it, it is made anew"
apt_get --download-only install "$@" >/dev/null || skip "the Debian mirror does not give $*"
for package in "$work"/cache/archives/*.deb; do
    file=$inside/cache/archives/${package##*/}
    in_lab dpkg-deb --fsys-tarfile "$file" | tar -x --no-same-owner -C "$folder" "${leave_out[@]}"
    in_lab dpkg-deb --show "$file"
done
