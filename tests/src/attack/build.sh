#!/bin/sh
# Rebuilds stale.co from stale.hip with hipcc (or what HIPCC names).
set -eu
cd "$(dirname "$0")"
${HIPCC:-hipcc} --genco --offload-arch=gfx942 --no-gpu-bundle-output -O3 -o stale.co stale.hip
