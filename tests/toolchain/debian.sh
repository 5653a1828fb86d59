# What the scripts here have in common: the Debian mirror of this machine's apt configuration, and the system in the folder $lab.
# To be sourced.

in_lab() { chroot "$lab" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

mirror() {
    local uri
    uri=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
    [ -n "$uri" ] || uri=$(awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}' /etc/apt/sources.list 2>/dev/null || true)
    printf %s "$uri"
}
hide_mirror() { sed -uE 's#https?://[^ ]+#<mirror>#g'; }

reachable() {
    local file
    file=$(mktemp)
    /usr/lib/apt/apt-helper -o Acquire::Retries=2 download-file "$(mirror)/dists/sid/Release" "$file" >/dev/null 2>&1
    local result=$?
    rm -f "$file" "$file".*
    return $result
}

# Installs the Debian packages of these names whose programs of the same names are not there.
need() {
    local name
    for name; do
        command -v "$name" >/dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends "$name"; } >/dev/null
    done
}

# Makes a small Debian system that trusts the mirror: SUITE FOLDER [PACKAGES, with commas between them].
small_system() {
    local log status=0
    log=$(mktemp)
    debootstrap --variant=minbase --include="ca-certificates${3:+,$3}" "$1" "$2" "$(mirror)" >"$log" 2>&1 || status=$?
    [ "$status" = 0 ] || hide_mirror <"$log" | tail -n 5 >&2
    rm "$log"
    if [ -s /etc/ssl/certs/ca-certificates.crt ]; then cp -L /etc/ssl/certs/ca-certificates.crt "$2/etc/ssl/certs/"; fi
    return "$status"
}

# The packages of a suite such as sid, as a source of apt in the system.
suite_sources() {
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$(mirror)" "$1"
}
