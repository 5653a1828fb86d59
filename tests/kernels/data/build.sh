#!/bin/sh
# Rebuilds the committed kernels: checksums of what the host computes, and code objects in compressed bundles.
# Needs a clang that the tests find, and clang-offload-bundler (or what BUNDLER names).
set -eu
cd "$(dirname "$0")"
cargo test -p hipr-kernel-tests --test compared -- --ignored --exact write_committed_kernels
for f in gfx90a-O0 gfx90a-O3 gfx942-O0 gfx942-O3; do
    mv $f.co $f.elf
    "${BUNDLER:-clang-offload-bundler}" --type=o --targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--${f%-*} \
        --input=/dev/null --input=$f.elf --output=$f.co --compress
    rm $f.elf
done
