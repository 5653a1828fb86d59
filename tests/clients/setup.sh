#!/bin/bash
# Installs the clients that tests/clients runs into a folder: from PyPI IREE's compiler and runtime for this machine's Python, and
# tinygrad for the Python of the system in a folder that tests/toolchain/setup.sh makes; from Debian llama.cpp with its HIP backend,
# unpacked for that system. The folder's name is the only line on standard output.
#
# Usage: setup.sh [--check]     --check: only look, fetch nothing
# Folder: $HIPR_CLIENTS, else ${XDG_CACHE_HOME:-$HOME/.cache}/hipr/clients (about 3.1 GB)
# Ends with
#   0   ready
#   77  cannot be made here (no compiler, no Python 3.11 or later, no network; with --check: is not there): skip what needs it
#   1   something broke on the way
set -eu -o pipefail
export LC_ALL=C PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

here=$(cd "$(dirname "$0")" && pwd)
folder=${HIPR_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/hipr/clients}
note() { echo "clients: $*" >&2; }
skip() { note "$*"; exit 77; }

# What was installed, so that a changed requirement installs anew.
wanted() { cat "$here/requirements.txt" "$here/requirements-tinygrad.txt"; }
python_ready() { [ -e "$folder/installed" ] && wanted | cmp -s - "$folder/installed"; }
llama_ready() { cmp -s "$here/packages-llama.txt" "$folder/llama/installed"; }

if python_ready && llama_ready; then
    echo "$folder"
    exit 0
fi
[ "${1:-}" != --check ] || skip "no clients in $folder, or not all"
lab=$("$here/../toolchain/setup.sh") || skip "no compiler (tests/toolchain/setup.sh): tinygrad cannot run"
python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || skip "needs Python 3.11 or later, with venv"
lab_python=$(chroot "$lab" /usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') || skip "no Python in $lab"

mkdir -p "$folder"
log=$folder/pip.log
install() { "$folder/iree/bin/pip" install --progress-bar off "$@" > "$log" 2>&1; }
failed() {
    grep -E '^(ERROR|WARNING)' "$log" | sed -E 's#https?://[^ ]+#<index>#g' | tail -n 3 >&2
    skip "pip could not install $1: no network, or no package for this machine"
}

install_python() {
    note "installing IREE and tinygrad into $folder"
    rm -rf "$folder/iree" "$folder/tinygrad" "$folder/installed"
    python3 -m venv "$folder/iree"
    install -r "$here/requirements.txt" || failed "IREE"
    # Wheels for another Python than the one that installs them.
    install --target "$folder/tinygrad" --only-binary=:all: --python-version "$lab_python" \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 \
        -r "$here/requirements-tinygrad.txt" || failed "tinygrad"
    rm -f "$log"
    wanted > "$folder/installed"
}

install_llama() {
    local packages
    note "unpacking llama.cpp into $folder"
    new=$(mktemp -d "$folder/llama.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    mapfile -t packages < "$here/packages-llama.txt"
    # rocBLAS's kernels, 2.7 GB, are for products of large matrices: without them it is loaded, and not used.
    "$here/../toolchain/unpack.sh" "$lab" "$new" '--exclude=*/rocblas/*' "${packages[@]}" > "$new/versions" ||
        skip "llama.cpp could not be unpacked"
    cp "$here/packages-llama.txt" "$new/installed"
    rm -rf "$folder/llama"
    mv "$new" "$folder/llama"
    trap - EXIT
}

python_ready || install_python
llama_ready || install_llama
echo "$folder"
