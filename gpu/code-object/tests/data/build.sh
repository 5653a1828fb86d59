#!/bin/sh
# Rebuilds the files of this folder: code objects, bundles and what LLVM's own tools read in them.
# Needs hipcc and HIP's headers, LLVM 21 (clang, llvm-mc, llvm-readelf, lld, clang-offload-bundler) and python3.
set -eu
cd "$(dirname "$0")"
V=${LLVM_VERSION:--21}
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
device() { hipcc -O2 --cuda-device-only --no-gpu-bundle-output "$@"; }

# Code objects of each version, and their metadata as llvm-readelf prints it.
for v in 4 5 6; do
    device -cuid=kernels --offload-arch=gfx942 -mcode-object-version=$v kernels.hip -o kernels-v$v.elf
done
device -cuid=kernels --offload-arch=gfx1100 kernels.hip -o kernels-gfx1100.elf
for f in kernels-v4 kernels-v5 kernels-v6 kernels-gfx1100; do
    llvm-readelf$V --notes $f.elf | sed -n '/^ *amdhsa.kernels:/,/^\.\.\./p' > $f.notes
    llvm-readelf$V --dyn-syms --wide $f.elf | awk '$4 == "OBJECT" { print $8, "0x" $2, $3 }' > $f.symbols
done

# One note for each linked object.
for f in one two; do
    device -cuid=$f --offload-arch=gfx942 -S $f.hip -o "$TMP/$f.s"
    llvm-mc$V -triple=amdgcn-amd-amdhsa -mcpu=gfx942 -filetype=obj "$TMP/$f.s" -o "$TMP/$f.o"
done
cp "$TMP/one.o" unlinked.elf
ld.lld$V -shared --gc-sections "$TMP/one.o" "$TMP/two.o" -o notes.elf

# Relocations, and one of a symbol that nothing defines.
for f in relocations undefined; do
    case $f in undefined) define=--defsym=UNDEFINED=1 ;; *) define= ;; esac
    llvm-mc$V -triple=amdgcn-amd-amdhsa -mcpu=gfx942 -filetype=obj $define relocations.s -o "$TMP/$f.o"
    ld.lld$V -shared "$TMP/$f.o" -o $f.elf
done
llvm-readelf$V --dyn-syms --wide relocations.elf | awk '$4 == "OBJECT" { print $8, "0x" $2, $3 }' > relocations.symbols

# A descriptor with every field set.
llvm-mc$V -triple=amdgcn-amd-amdhsa -mcpu=gfx942 --amdhsa-code-object-version=4 -filetype=obj descriptor.s \
    -o "$TMP/descriptor.o"
ld.lld$V -shared "$TMP/descriptor.o" -o descriptor.elf

# A bundle with settings and generic code; the same compressed as versions 2 and 3, and as a zlib stream.
genco() {
    hipcc -O2 -cuid=one --genco --offload-arch=gfx942 --offload-arch=gfx90a:sramecc+:xnack- --offload-arch=gfx90a:xnack+ \
        --offload-arch=gfx9-4-generic --offload-arch=gfx1030 one.hip "$@"
}
genco -o one.bundle
genco --offload-compress -o one-v2.ccob
COMPRESSED_BUNDLE_FORMAT_VERSION=3 genco --offload-compress -o one-v3.ccob
python3 - <<'PY'
import hashlib, struct, zlib
bundle = open("one.bundle", "rb").read()
stream = zlib.compress(bundle, 9)
digest = hashlib.md5(bundle).digest()[:8]
head = b"CCOB" + struct.pack("<HHII", 2, 0, 24 + len(stream), len(bundle)) + digest
open("one-v2-zlib.ccob", "wb").write(head + stream)
PY

# What the bundler itself takes out of it.
clang-offload-bundler$V --list --type=o --input=one.bundle > one.targets
clang-offload-bundler$V --unbundle --type=o --input=one.bundle --targets=hipv4-amdgcn-amd-amdhsa--gfx942 \
    --output=one-gfx942.elf

# Processor numbers.
for p in gfx600 gfx601 gfx602 gfx700 gfx701 gfx702 gfx703 gfx704 gfx705 gfx801 gfx802 gfx803 gfx805 gfx810 \
    gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx942 gfx950 gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 \
    gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 \
    gfx1200 gfx1201 gfx1250 gfx9-generic gfx9-4-generic gfx10-1-generic gfx10-3-generic gfx11-generic gfx12-generic; do
    echo s_endpgm | llvm-mc$V -triple=amdgcn-amd-amdhsa -mcpu=$p -filetype=obj -o "$TMP/machine.o" -
    printf '%s 0x%s\n' $p "$(od -An -tx4 -j48 -N4 "$TMP/machine.o" | tr -d ' ')"
done > machines.txt
