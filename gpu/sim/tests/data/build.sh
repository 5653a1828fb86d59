#!/bin/sh
# Rebuilds kernels-O0.co and kernels-O3.co from kernels.hip with hipcc (or what HIPCC names).
set -eu
cd "$(dirname "$0")"
for level in O0 O3; do
    ${HIPCC:-hipcc} --genco --offload-arch=gfx942 --no-gpu-bundle-output -$level -o kernels-$level.co kernels.hip
done
