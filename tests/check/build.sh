#!/bin/bash
# Compiles programs of this folder for gfx942, at -O0 and at -O3, with debug information, with the compiler that ../toolchain/setup.sh makes.
#
# Usage: build.sh OUT_DIR [-j JOBS] [NAME...]     (2 jobs and all programs unless told; NAME such as bugs/free_inside)
# Makes OUT_DIR/NAME.O0 and .O3 from NAME.hip. Only what changed is compiled again.
# Like those of ../programs the programs run on this machine, with the loader and the C++ library of the compiler's folder.
# Ends with 0, with 1 when something does not compile, with 77 when there is no compiler (see setup.sh).
set -eu -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)

# One output, in a process of its own: build.sh --one LAB WORK OUT LEVEL NAME
if [ "${1:-}" = --one ]; then
    lab=$2 work=$3 out=$4 level=$5 name=$6
    libraries=/usr/lib/x86_64-linux-gnu inside=${work#"$lab"} target=$6.$5
    common="--offload-arch=gfx942 -std=c++17 -$level -g -Wall -Wextra -Werror -fdebug-prefix-map=${work#"$lab"}/="
    flags="$common -Wl,--dynamic-linker=$lab/lib64/ld-linux-x86-64.so.2 -Wl,--enable-new-dtags,-rpath,$lab$libraries"
    stamp=$out/.stamps/$target
    inputs=$({ echo "${flags/"$inside"/}"; cat "$work/version" "$here/$name.hip" "$here/program.h"; } | sha256sum)
    [ -e "$out/$target" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ] && exit 0
    rm -f "$stamp" "$out/$target"
    hipcc() { chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 hipcc "$@" >&2; }
    # HIP's own header is most of what there is to compile: it is compiled once for each level and side.
    {
        flock 7
        for side in device host; do
            [ -e "$work/$side.$level.pch" ] && continue
            # shellcheck disable=SC2086
            hipcc $common --offload-$side-only -S -Wno-unused-command-line-argument -Xclang -emit-pch -o "$inside/$side.$level.new" -x hip "$inside/program.h"
            mv "$work/$side.$level.new" "$work/$side.$level.pch"
        done
    } 7> "$work/$level.lock"
    for side in device host; do flags+=" -Xarch_$side -Wp,-include-pch,$inside/$side.$level.pch"; done
    # shellcheck disable=SC2086
    hipcc $flags -I"$inside" -o "$inside/$target" "$inside/$name.hip" || { echo "build.sh: $target does not compile" >&2; exit 1; }
    mv "$work/$target" "$out/$target"
    echo "$inputs" > "$stamp"
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
cp -r "$here"/program.h "$here"/bugs "$here"/correct "$work"
chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root hipcc --version > "$work/version"

[ ${#names[@]} != 0 ] || mapfile -t names < <(cd "$here" && printf '%s\n' bugs/*.hip correct/*.hip | sed 's/\.hip$//')
for name in "${names[@]}"; do
    for level in O0 O3; do printf '%s\0' $level "$name"; done
done | nice xargs -0 -r -n 2 -P "$jobs" "$here/build.sh" --one "$lab" "$work" "$out" || exit 1
