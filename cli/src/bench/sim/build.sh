#!/bin/bash
# Compiles kernels.hip to kernels.co, which is committed. With --check: fails if kernels.co is not what would be made.
# Without SLP vectorization, which would make packed instructions of the loops that are to measure single ones.
set -eu -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
lab=$("$here/../../../../tests/toolchain/setup.sh")
work=$(mktemp -d "$lab/tmp/hipr.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$here/kernels.hip" "$work"
inside=${work#"$lab"}
chroot "$lab" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 hipcc --genco --offload-arch=gfx942 -std=c++17 -O2 \
    -fno-slp-vectorize -fuse-cuid=none --no-gpu-bundle-output -o "$inside/kernels.co" "$inside/kernels.hip"
if [ "${1:-}" = --check ]; then cmp "$work/kernels.co" "$here/kernels.co"; else mv "$work/kernels.co" "$here/kernels.co"; fi
