#!/bin/bash
# Compiles programs of this folder for gfx942 with debug information, at -O0 and at -O3, with the compiler that ../toolchain/setup.sh makes.
#
# Usage: build.sh OUT_DIR [-j JOBS] [NAME...]       (2 jobs and all programs unless told; NAME such as bugs/lock_never_released)
# Makes OUT_DIR/NAME.O0 and .O3 from NAME.hip. Only what changed is compiled again. They run on this machine, with the loader and the C++
# library of the compiler's folder.
# Ends with 0, with 1 when something does not compile, with 77 when there is no compiler (see setup.sh).
set -eu -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)

# One program, in a process of its own: build.sh --one LAB WORK OUT LEVEL NAME
if [ "${1:-}" = --one ]; then
    lab=$2 work=$3 out=$4 level=$5 name=$6 target=$6.$5
    inputs=$({ echo "$level"; cat "$work/version" "$0" "$here/seed.h" "$here/$name.hip"; } | sha256sum)
    [ -e "$out/$target" ] && [ "$(cat "$out/.stamps/$target" 2>/dev/null)" = "$inputs" ] && exit 0
    rm -f "$out/.stamps/$target" "$out/$target"
    inside=${work#"$lab"} libraries=/usr/lib/x86_64-linux-gnu
    hipcc() { chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 hipcc "$@" >&2; }
    common="--offload-arch=gfx942 -std=c++17 -$level -g -Wall -Wextra -Werror -pthread"
    # seed.h, and HIP's own header in it, is most of what there is to compile: it is compiled once for each level and side.
    {
        flock 7
        for side in device host; do
            [ -e "$work/$side.$level.pch" ] && continue
            # shellcheck disable=SC2086
            hipcc $common --offload-$side-only -S -Wno-unused-command-line-argument -Xclang -emit-pch -o "$inside/$side.$level.new" -x hip "$inside/seed.h"
            mv "$work/$side.$level.new" "$work/$side.$level.pch"
        done
    } 7> "$work/$level.lock"
    flags="$common -Wl,--dynamic-linker=$lab/lib64/ld-linux-x86-64.so.2 -Wl,--enable-new-dtags,-rpath,$lab$libraries"
    for side in device host; do flags+=" -Xarch_$side -Wp,-include-pch,$inside/$side.$level.pch"; done
    # shellcheck disable=SC2086
    hipcc $flags -I"$inside" -o "$inside/$target" "$inside/$name.hip" || { echo "build.sh: $target does not compile" >&2; exit 1; }
    mv "$work/$target" "$out/$target"
    echo "$inputs" > "$out/.stamps/$target"
    exit 0
fi

jobs=2 out='' names=()
while [ $# -gt 0 ]; do
    case $1 in
    -j) jobs=$2; shift ;;
    *) if [ -z "$out" ]; then out=$1; else names+=("$1"); fi ;;
    esac
    shift
done
[ -n "$out" ] || { echo "usage: build.sh OUT_DIR [-j JOBS] [NAME...]" >&2; exit 2; }
lab=$("$here/../toolchain/setup.sh" --check)
mkdir -p "$out"/{.stamps/,}{bugs,correct}
out=$(cd "$out" && pwd)
exec 8>"$out/.lock" # one at a time in this folder
flock 8
work=$(mktemp -d "$lab/tmp/hipr.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r "$here"/seed.h "$here"/bugs "$here"/correct "$work"
chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root hipcc --version > "$work/version"
[ ${#names[@]} != 0 ] || mapfile -t names < <(cd "$here" && printf '%s\n' bugs/*.hip correct/*.hip | sed 's/\.hip$//')
for name in "${names[@]}"; do
    [ -e "$here/$name.hip" ] || { echo "build.sh: there is no program $name" >&2; exit 2; }
    for level in O0 O3; do printf '%s\0' $level "$name"; done
done | nice xargs -0 -r -n 2 -P "$jobs" "$here/build.sh" --one "$lab" "$work" "$out" || exit 1
