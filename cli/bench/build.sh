#!/bin/sh
# Rebuilds six.co from six.hip with hipcc (or what HIPCC names).
set -eu
cd "$(dirname "$0")"
${HIPCC:-hipcc} --genco --offload-arch=gfx942 -O3 -o six.co six.hip
