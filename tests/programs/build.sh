#!/bin/bash
# Compiles every program of this folder for gfx942, at -O0 and at -O3, with the compiler that ../toolchain/setup.sh makes.
#
# Usage: build.sh OUT_DIR [-j JOBS] [--hip RELEASE] [--pairs | --answers | NAME...]       (2 jobs and all programs unless told)
# RELEASE: 6.4.3 unless told, or 7.2.4, of whose headers and library the programs are compiled then.
# Makes OUT_DIR/NAME.O0 and .O3 from NAME.hip, and from modules/NAME.hip the code object bundles NAME.O0.co, .O3.co (plain), NAME.O0.ccob,
# .O3.ccob (compressed), and NAME.O0.v4.co, .v5.co ... (older versions of code objects); from compiler/NAME.hip programs that use the
# runtime compiler: NAME.O0.inside takes it from libamdhip64, .before and .behind are linked to libhiprtc before and behind that.
# --pairs: the programs for two devices instead, OUT_DIR/NAME.O0 and .O3 from pairs/NAME.hip.
# --answers: the programs that print what functions answer instead, OUT_DIR/NAME.O0 from answers/NAME.hip.
# Only what changed is compiled again.
# The programs run on this machine, not only in the compiler's folder: they name that folder's loader and C++ library, as they are newer
# than this machine's. LD_LIBRARY_PATH goes before that folder, so that it decides which libamdhip64 is loaded.
# Ends with 0, with 1 when something does not compile, with 77 when there is no compiler (see setup.sh).
set -eu -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)

# One output, in a process of its own: build.sh --one LAB WORK OUT RELEASE LEVEL KIND SOURCE
if [ "${1:-}" = --one ]; then
    lab=$2 work=$3 out=$4 release=$5 level=$6 kind=$7 source=$8
    name=$(basename "$source" .hip)
    common="--offload-arch=gfx942 -std=c++17 -$level -Wall -Wextra -Werror -fmacro-prefix-map=${work#"$lab"}/="
    libraries=/usr/lib/x86_64-linux-gnu hip=/opt/hip-$release/usr
    if [ "$release" != 6.4.3 ]; then common+=" -isystem $hip/include -Wno-unused-command-line-argument -L$hip/lib/x86_64-linux-gnu -Wl,-rpath-link,$hip/lib/x86_64-linux-gnu"; fi
    here_too="$common -pthread -Wl,--dynamic-linker=$lab/lib64/ld-linux-x86-64.so.2 -Wl,--enable-new-dtags,-rpath,$lab$libraries" compiler='-Wl,--no-as-needed -lhiprtc'
    case $kind in
    program) target=$name.$level flags=$here_too ;;
    inside) target=$name.$level.inside flags=$here_too ;;
    before) target=$name.$level.before flags="$here_too $compiler" ;;
    behind) target=$name.$level.behind flags="$here_too -lamdhip64 $compiler" ;;
    co) target=$name.$level.co flags="$common --genco" ;;
    ccob) target=$name.$level.ccob flags="$common --genco --offload-compress" ;;
    v[0-9]) target=$name.$level.$kind.co flags="$common --genco -mcode-object-version=${kind#v}" ;;
    esac
    stamp=$out/.stamps/$target
    inputs=$({ echo "${flags/"${work#"$lab"}"/}"; cat "$work/version" "$source"; [[ $kind =~ ^(co|ccob|v[0-9])$ ]] || { cat "$here/check.h"; ! grep -q '"runtime.h"' "$source" || cat "$here/runtime.h"; [[ $source != */pairs/* ]] || cat "$here/pair.h"; [[ $source != */answers/* ]] || cat "$here/answers.h"; }; } | sha256sum)
    [ -e "$out/$target" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ] && exit 0
    rm -f "$stamp" "$out/$target"
    inside=${work#"$lab"}
    hipcc() { chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 hipcc "$@" >&2; }
    case $kind in co | ccob | v[0-9]) ;; *)
        # check.h, and HIP's own header in it, is most of what there is to compile: it is compiled once for each level and side.
        {
            flock 7
            for side in device host; do
                [ -e "$work/$side.$level.pch" ] && continue
                # shellcheck disable=SC2086
                hipcc $common -pthread --offload-$side-only -S -Wno-unused-command-line-argument -Xclang -emit-pch -o "$inside/$side.$level.new" -x hip "$inside/check.h"
                mv "$work/$side.$level.new" "$work/$side.$level.pch"
            done
        } 7> "$work/$level.lock"
        for side in device host; do flags+=" -Xarch_$side -Wp,-include-pch,$inside/$side.$level.pch"; done ;;
    esac
    # shellcheck disable=SC2086
    hipcc $flags -o "$inside/$target" "$inside/${source#"$here/"}" || { echo "build.sh: $target does not compile" >&2; exit 1; }
    mv "$work/$target" "$out/$target"
    echo "$inputs" > "$stamp"
    exit 0
fi

jobs=2 release=6.4.3 folder='' out='' names=()
while [ $# -gt 0 ]; do
    case $1 in
    -j) jobs=$2; shift ;;
    -j*) jobs=${1#-j} ;;
    --hip) release=$2; shift ;;
    --pairs | --answers) folder=${1#--} ;;
    *) if [ -z "$out" ]; then out=$1; else names+=("$1"); fi ;;
    esac
    shift
done
[ -n "$out" ] || { echo "usage: build.sh OUT_DIR [-j JOBS] [--hip RELEASE] [NAME...]" >&2; exit 2; }
lab=$("$here/../toolchain/setup.sh")
[ "$release" = 6.4.3 ] || [ -e "$lab/opt/hip-$release" ] || { echo "build.sh: there is no HIP $release in $lab/opt" >&2; exit 2; }
mkdir -p "$out/.stamps"
out=$(cd "$out" && pwd)
exec 8>"$out/.lock" # one at a time in this folder
flock 8

work=$(mktemp -d "$lab/tmp/hipr.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r "$here"/*.h "$here"/*.hip "$here"/modules "$here"/compiler "$here"/pairs "$here"/answers "$work"
chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root hipcc --version > "$work/version"

# What was made of a source that is gone.
for stamp in "$out"/.stamps/*; do
    target=${stamp##*/}
    name=${target%%.*}
    [ -e "$here/$name.hip" ] || [ -e "$here/modules/$name.hip" ] || [ -e "$here/compiler/$name.hip" ] || [ -e "$here/pairs/$name.hip" ] || [ -e "$here/answers/$name.hip" ] || rm -f "$out/$target" "$stamp"
done

if [ "$folder" ]; then sources=("$here/$folder"/*.hip); else sources=("$here"/*.hip "$here"/modules/*.hip "$here"/compiler/*.hip); fi
for source in "${sources[@]}"; do
    name=$(basename "$source" .hip)
    [ ${#names[@]} = 0 ] || [[ " ${names[*]} " = *" $name "* ]] || continue
    for level in O0 O3; do
        case $source in
        */modules/*) for kind in co ccob v4 v5; do printf '%s\0' $level $kind "$source"; done ;;
        # HIP 7 has no runtime compiler in libamdhip64.
        */compiler/*) for kind in inside before behind; do [ "$kind$release" = inside7.2.4 ] || printf '%s\0' $level $kind "$source"; done ;;
        # What is asked is code of the host.
        */answers/*) [ $level = O3 ] || printf '%s\0' $level program "$source" ;;
        *) printf '%s\0' $level program "$source" ;;
        esac
    done
done | nice xargs -0 -r -n 3 -P "$jobs" "$here/build.sh" --one "$lab" "$work" "$out" "$release" || exit 1
