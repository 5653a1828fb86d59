#!/bin/bash
# Compiles the kernels of every program of this folder into prebuilt/NAME.O0.co and .O3.co (compressed bundles with one gfx942 code object),
# for machines without the compiler, and checks that kernels.tsv beside them names exactly the kernels that they hold.
#
# Usage: prebuilt.sh [--check] [-j JOBS]      --check: changes nothing, fails if a file differs from what would be made (same compiler needed)
# Ends with 0, 1 (does not compile, or a difference), 77 (no compiler, see ../toolchain/setup.sh).
set -eu -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
jobs=2 check=no
while [ $# -gt 0 ]; do
    case $1 in
    -j) jobs=$2; shift ;;
    -j*) jobs=${1#-j} ;;
    --check) check=yes ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done
lab=$("$here/../toolchain/setup.sh")
work=$(mktemp -d "$lab/tmp/hipr.XXXXXX")
trap 'rm -rf "$work"' EXIT
inside=${work#"$lab"}
cp "$here"/*.h "$here"/*.hip "$here"/modules/*.hip "$work"
mkdir "$work/out"

in_lab() { chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
export -f in_lab
export lab inside
for source in "$work"/*.hip; do
    name=$(basename "$source" .hip)
    # A program without kernels has no code object.
    grep -q __global__ "$source" || continue
    # Without a compilation unit's id the same source gives the same bytes, wherever it lies.
    for level in O0 O3; do echo "hipcc --genco --offload-arch=gfx942 -std=c++17 -$level -fuse-cuid=none --offload-compress -o $inside/out/$name.$level.co $inside/$name.hip"; done
done | nice xargs -d '\n' -P "$jobs" -I{} bash -c 'in_lab {}' >&2

# What the code objects hold: every kernel has a symbol NAME.kd.
llvm=$(cd "$lab" && ls -d usr/lib/llvm-*/bin | tail -n 1)
for level in O0 O3; do
    for object in "$work"/out/*."$level".co; do
        name=$(basename "$object" ".$level.co")
        in_lab "/$llvm/clang-offload-bundler" --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx942 --input="$inside/out/$name.$level.co" --output="$inside/elf"
        in_lab "/$llvm/llvm-nm" --dynamic --defined-only --format=just-symbols "$inside/elf" | sed -n "s/\.kd$//p" | sort | sed "s/^/$name\t/"
    done > "$work/kernels.$level"
done
grep -v -e '^#' -e '^program' "$here/prebuilt/kernels.tsv" | cut -f 1,2 | sort > "$work/listed" || true
for level in O0 O3; do
    sort "$work/kernels.$level" | diff "$work/listed" - >&2 || { echo "prebuilt.sh: prebuilt/kernels.tsv (<) and the kernels at $level (>) differ" >&2; exit 1; }
done

if [ $check = yes ]; then
    for object in "$work"/out/*.co; do cmp "$object" "$here/prebuilt/$(basename "$object")" >&2 || exit 1; done
else
    mkdir -p "$here/prebuilt"
    rm -f "$here"/prebuilt/*.co
    mv "$work"/out/*.co "$here/prebuilt/"
    du -ch "$here"/prebuilt/*.co | tail -n 1 >&2
fi
