#!/usr/bin/env bash
# Runs tests in an emulated machine with Debian's kernel, which can encrypt what TCP sockets send (kTLS): most kernels of containers and
# small virtual machines cannot. Nothing of the kernel is installed; its package is unpacked into a folder.
#
# Usage: run.sh [TEST PROGRAM [WORD ...]]     TEST PROGRAM: one of cli/tests; without it ktls. WORD: parts of names of tests
# Folder: ${XDG_CACHE_HOME:-$HOME/.cache}/hipr/ktls (about 150 MB). HIPR_KTLS_TIMEOUT: seconds after which it fails (default 3600)
# Needs a Debian-like x86-64 machine, and installs qemu-system-x86, busybox-static, cpio and kmod where they are missing; then it needs root.
# Ends with 0 if the tests ran and passed.
set -euo pipefail
cd "$(dirname "$0")/../.."
export LC_ALL=C
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hipr/ktls
# What the kernel encrypts with.
modules=(tls gcm ctr ghash_generic chacha20poly1305 chacha_generic poly1305_generic aesni_intel)
note() { echo "ktls: $*" >&2; }

need_tools() {
    command -v qemu-system-x86_64 >/dev/null && command -v busybox >/dev/null && command -v cpio >/dev/null && command -v depmod >/dev/null && return
    apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends qemu-system-x86 busybox-static cpio kmod >/dev/null
}

# The kernel's package is what the metapackage of the day depends on.
need_kernel() {
    compgen -G "$cache/kernel/boot/vmlinuz-*" >/dev/null && return
    local work package
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/kernel.XXXXXX")
    trap 'rm -rf "$work"' RETURN
    apt-get update -q >/dev/null
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)$/\1/p' | head -n 1)
    (cd "$work" && apt-get download -q "$package" >/dev/null 2>&1) || { note "apt cannot fetch ${package:-linux-image-cloud-amd64}"; exit 1; }
    dpkg-deb -x "$work"/linux-image-*.deb "$work/root"
    # Some releases have it in /usr.
    [[ -d $work/root/lib/modules ]] || { mkdir -p "$work/root/lib" && mv "$work/root/usr/lib/modules" "$work/root/lib/modules"; }
    depmod -b "$work/root" "$(ls "$work/root/lib/modules")"
    rm -rf "$cache/kernel" && mv "$work/root" "$cache/kernel"
}

# Builds test programs; prints 'name path' of each, and what they start.
build() {
    cargo test -p hipr --locked --no-run --message-format=json "${@/#/--test=}" | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line) if line.startswith("{") else {}
    target = message.get("target") or {}
    if message.get("executable") and target["name"] in sys.argv[1:] + ["hipr"] and target["kind"][0] in ("test", "bin"):
        print(target["name"] if target["kind"] == ["test"] else "-", message["executable"])
' "$@" | sort -u
}

# Copies a file into the machine, at the same place, and the libraries that it is linked with.
put() {
    local file
    mkdir -p "$root$(dirname "$1")"
    strip --strip-debug -o "$root$1" "$1" 2>/dev/null || cp -L "$1" "$root$1"
    chmod 755 "$root$1"
    for file in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
        [[ -e $root$file ]] || { mkdir -p "$root$(dirname "$file")" && cp -L "$file" "$root$file"; }
    done
}

# The first process: loads what the kernel needs, runs the tests, says how they ended, and switches the machine off.
write_init() {
    {
        cat <<'EOF'
#!/bin/sh
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
mkdir -p /dev/shm /dev/pts /tmp /root /run; mount -t tmpfs none /dev/shm; chmod 1777 /tmp /dev/shm
ip link set lo up
ulimit -n 16384
export HOME=/root PATH=/bin RUST_BACKTRACE=1 HIPR_REQUIRE_KTLS=1
EOF
        # What this processor has not got, another module does.
        sed 's/.*/insmod & 2>\/dev\/null/' "$root/modules"
        echo "echo \"ktls: Linux \$(uname -r); \$(cat /proc/sys/net/ipv4/tcp_available_ulp)\""
        echo "failed=0"
        for program in "${programs[@]}"; do
            echo "echo 'ktls: ${program%% *}'; cd '$PWD/cli'; ${program#* } --test-threads=2 || failed=1"
        done
        echo "cat /proc/net/tls_stat | tr -s '[:space:]' ' '; echo"
        echo "echo \"ktls: ended with \$failed\"; poweroff -f"
    } >"$root/init"
    chmod 755 "$root/init"
}

need_tools
need_kernel
kernel=$cache/kernel
release=$(ls "$kernel/lib/modules")
work=$(mktemp -d "$cache/machine.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,lib} "$root$PWD/cli"
cp "$(command -v busybox)" "$root/bin/busybox"
for name in $("$root/bin/busybox" --list); do [[ $name == busybox ]] || ln -s busybox "$root/bin/$name"; done

# Each module behind those that it needs.
modprobe -d "$kernel" -S "$release" --show-depends -a "${modules[@]}" | sed -n "s|^insmod $kernel||p" | awk '!seen[$1]++ { print $1 }' >"$root/modules"
while read -r module; do mkdir -p "$root$(dirname "$module")" && cp "$kernel$module" "$root$module"; done <"$root/modules"

# Test programs with what is run of each.
wanted=("${1:-ktls}")
programs=()
while read -r name file; do
    put "$file"
    if [[ $name == - ]]; then
        # The libraries that programs are started with are beside it.
        for library in "${file%/*}"/deps/lib{amdhip64,hsa_runtime64}*.so; do [[ ! -e $library ]] || put "$library"; done
    else
        programs+=("$name $file ${*:2}")
    fi
done < <(build "${wanted[@]}")
[[ ${#programs[@]} -gt 0 ]] || { note "nothing to run"; exit 1; }
write_init
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initramfs"

note "$(du -h "$work/initramfs" | cut -f1) of programs in an emulated machine"
timeout "${HIPR_KTLS_TIMEOUT:-3600}" qemu-system-x86_64 -machine q35,accel=tcg -cpu max -smp 2 -m 3072 -nographic -no-reboot -nic none \
    -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initramfs" -append "console=ttyS0 quiet panic=-1" </dev/null 2>&1 |
    sed -u 's/\r//g' | tee "$work/log"
grep -qx "ktls: ended with 0" "$work/log" || { note "a test failed, or the machine ended before them"; exit 1; }
