#!/bin/bash
# Puts AMD's HIP runtime 5.2.3, as Debian 12 packages it, into a folder, for the tests that load the real library. Nothing is
# installed: a machine without ROCm stays one. The folder's name is the only line on standard output.
#
# Usage: rocm5.sh [--check]     --check: only look, fetch nothing
# Folder: $HIPR_ROCM5, else ${XDG_CACHE_HOME:-$HOME/.cache}/hipr/rocm5 (about 80 MB, and what of its dependencies is not installed)
# Ends with
#   0   ready
#   77  cannot be made here (not Debian 12 on x86-64, no network; with --check: is not there): skip what needs it
#   1   something broke on the way
set -eu -o pipefail
export LC_ALL=C

folder=${HIPR_ROCM5:-${XDG_CACHE_HOME:-$HOME/.cache}/hipr/rocm5}
note() { echo "rocm5: $*" >&2; }
skip() { note "$*"; exit 77; }

ready() { [ -e "$folder/usr/lib/x86_64-linux-gnu/libamdhip64.so.5" ]; }

# What apt would fetch to install the library here: 'address' name size hash.
packages() {
    apt-get install -q -y --no-install-recommends --reinstall --print-uris libamdhip64-5 2>/dev/null | grep "^'" | tr -d "'"
}

if ready; then
    echo "$folder"
    exit 0
fi
[ "${1:-}" != --check ] || skip "no libraries in $folder"
[ "$(uname -sm)" = "Linux x86_64" ] || skip "needs x86-64 Linux"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "needs apt and dpkg (Debian 12)"

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$(dirname "$folder")/rocm5.XXXXXX")
trap 'rm -rf "$work"' EXIT
packages > "$work/list" || { apt-get update -q >/dev/null 2>&1 && packages > "$work/list"; } || skip "apt does not know libamdhip64-5 here"
while read -r address name _ hash; do
    /usr/lib/apt/apt-helper -o Acquire::Retries=2 download-file "$address" "$work/$name" "$hash" >/dev/null 2>&1 || skip "the Debian mirror does not give $name"
    dpkg-deb -x "$work/$name" "$work/root"
done < "$work/list"
rm -rf "$folder"
mv "$work/root" "$folder"
ready || { note "the packages do not hold libamdhip64.so.5"; exit 1; }
echo "$folder"
