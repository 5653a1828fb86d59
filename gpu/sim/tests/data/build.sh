#!/bin/sh
# Rebuilds the code objects from kernels.hip and meet.hip with hipcc (or what HIPCC names).
set -eu
cd "$(dirname "$0")"
for level in O0 O3; do
    ${HIPCC:-hipcc} --genco --offload-arch=gfx942 --no-gpu-bundle-output -$level -o kernels-$level.co kernels.hip
done
for arch in gfx90a gfx942; do
    ${HIPCC:-hipcc} --genco --offload-arch=$arch --no-gpu-bundle-output -O2 -o meet-$arch.co meet.hip
done
