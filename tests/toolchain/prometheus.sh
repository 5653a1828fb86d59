#!/bin/bash
# Puts Prometheus and promtool, as Debian packages them, into a folder, for the tests of a worker's metrics. Nothing is installed. The
# folder's name is the only line on standard output.
#
# Usage: prometheus.sh [--check]     --check: only look, fetch nothing
# Folder: $HIPR_PROMETHEUS, else ${XDG_CACHE_HOME:-$HOME/.cache}/hipr/prometheus
# Ends with
#   0   ready
#   77  cannot be made here (not a Debian-like x86-64 system, no network; with --check: is not there): skip what needs it
#   1   something broke on the way
set -eu -o pipefail
export LC_ALL=C

folder=${HIPR_PROMETHEUS:-${XDG_CACHE_HOME:-$HOME/.cache}/hipr/prometheus}
note() { echo "prometheus: $*" >&2; }
skip() { note "$*"; exit 77; }

ready() { [ -x "$folder/usr/bin/prometheus" ] && [ -x "$folder/usr/bin/promtool" ]; }

# Where apt would fetch the package from: 'address' name size hash.
package() { apt-get download -q -y --print-uris prometheus 2>/dev/null | grep "^'" | tr -d "'"; }

if ready; then
    echo "$folder"
    exit 0
fi
[ "${1:-}" != --check ] || skip "no programs in $folder"
[ "$(uname -sm)" = "Linux x86_64" ] || skip "needs x86-64 Linux"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "needs apt and dpkg"

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$(dirname "$folder")/prometheus.XXXXXX")
trap 'rm -rf "$work"' EXIT
package > "$work/list" || { apt-get update -q >/dev/null 2>&1 && package > "$work/list"; } || skip "apt does not know prometheus here"
read -r address name _ hash < "$work/list"
/usr/lib/apt/apt-helper -o Acquire::Retries=2 download-file "$address" "$work/$name" "$hash" >/dev/null 2>&1 || skip "the Debian mirror does not give $name"
# The programs alone: what the package needs besides them is for its pages and its service.
mkdir "$work/root"
dpkg-deb --fsys-tarfile "$work/$name" | tar -x --no-same-owner -C "$work/root" ./usr/bin/prometheus ./usr/bin/promtool
rm -rf "$folder"
mv "$work/root" "$folder"
ready || { note "the package does not hold prometheus and promtool"; exit 1; }
echo "$folder"
