#!/usr/bin/env bash
# Tests the container images: builds both with buildah on a base that debootstrap makes, runs the demo in the worker's, and in the one for CI
# compiles a HIP program and runs it. Needs root, a Debian-like system and its network.
#
# Usage: container.sh FOLDER      that packaging/build has filled
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/../toolchain/debian.sh"
dist=$(realpath "$1")
suite=trixie

need buildah debootstrap
folder=$(mktemp -d)
# Processes in a changed root, and images as plain folders: what a machine without user namespaces and overlays has, too.
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
buildah() { command buildah --root "$folder/images" --runroot "$folder/run" "$@"; }
cleanup() {
    buildah rm --all >/dev/null 2>&1 || true
    rm -rf --one-file-system "$folder"
}
trap cleanup EXIT

echo "container: a base of $suite"
small_system "$suite" "$folder/system"
base=$(buildah from scratch)
buildah add -q "$base" "$folder/system" / >/dev/null
rm -rf "$folder/system"
buildah commit -q "$base" localhost/base >/dev/null
buildah rm "$base" >/dev/null

for image in worker ci; do
    echo "container: the image $image"
    buildah bud -q --pull-never --build-arg BASE=localhost/base -f "$root/packaging/container/Containerfile.$image" -t "localhost/$image" "$dist" \
        >"$folder/log" 2>&1 || { hide_mirror <"$folder/log" | tail -n 20 >&2; exit 1; }
done
worker=$(buildah from --pull-never localhost/worker)
buildah run "$worker" -- hipr demo | grep 'All 8 kernels computed what the CPU computes'
ci=$(buildah from --pull-never localhost/ci)
buildah copy -q "$ci" "$root/tests/programs" /src >/dev/null
buildah run "$ci" -- sh -c 'cd /src && hipcc --offload-arch=gfx942 -O1 bitonic_sort.hip -o /tmp/program && hipr run -- /tmp/program'
echo "container: both images work"
