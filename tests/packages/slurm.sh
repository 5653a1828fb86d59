#!/usr/bin/env bash
# Tests `hipr run --slurm` and packaging/slurm with Debian's Slurm: a controller and a node with two GPUs on this machine, which are device files
# that nobody opens, as the workers emulate theirs. Needs root, a Debian-like system and its network.
#
# Usage: slurm.sh HIPR      the program; its library lies beside it, as cargo builds them
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
hipr=$(realpath "$1")
export LC_ALL=C DEBIAN_FRONTEND=noninteractive

step() { echo "slurm: $*"; }
fail() {
    echo "slurm: $*" >&2
    tail -n 20 "$folder"/*.log >&2 || true
    exit 1
}

for tool in slurmctld slurmd srun munged; do
    command -v "$tool" >/dev/null || {
        apt-get update -q && apt-get install -qy --no-install-recommends slurmctld slurmd slurm-client munge
    } >/dev/null 2>&1
done

folder=$(mktemp -d)
cleanup() {
    # Programs that still run, and with them their jobs.
    jobs -p | xargs -r kill 2>/dev/null || true
    scancel --user=root 2>/dev/null || true
    for name in slurmd slurmctld munged; do
        if [[ -s $folder/$name.pid ]]; then kill "$(<"$folder/$name.pid")" 2>/dev/null || true; fi
    done
    sleep 1
    rm -rf --one-file-system "$folder"
}
trap cleanup EXIT
chmod 755 "$folder"
mkdir "$folder"/{state,spool,munge,home,tmp}

# Two ports that are free now.
read -r control node < <(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(s.getsockname()[1] for s in sockets))')
name=$(hostname)
mknod "$folder/gpu0" c 1 3
mknod "$folder/gpu1" c 1 3
cat >"$folder/slurm.conf" <<END
ClusterName=hipr
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$control
SlurmdPort=$node
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge/socket
SlurmUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
GresTypes=gpu
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES State=UP
END
printf 'AutoDetect=off\nName=gpu File=%s/gpu[0-1] Flags=amd_gpu_env\n' "$folder" >"$folder/gres.conf"
export SLURM_CONF=$folder/slurm.conf

step "a controller and a node"
head -c 128 /dev/urandom >"$folder/munge/key"
chown -R munge:munge "$folder/munge"
chmod 400 "$folder/munge/key"
chmod 755 "$folder/munge"
setpriv --reuid munge --regid munge --clear-groups munged --key-file "$folder/munge/key" --socket "$folder/munge/socket" \
    --log-file "$folder/munge/log" --pid-file "$folder/munge/pid" --seed-file "$folder/munge/seed"
ln -s munge/pid "$folder/munged.pid"
slurmctld -i
slurmd
until_s() { # SECONDS COMMAND: waits until the command succeeds
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}
is_idle() { [[ $(sinfo --noheader -o %T 2>/dev/null) == idle ]]; }
no_jobs() { [[ -z $(squeue --noheader 2>/dev/null) ]]; }
until_s 60 is_idle || fail "the node does not come up"

export HOME=$folder/home TMPDIR=$folder/tmp
library=$(dirname "$hipr")/deps/libamdhip64.so
[[ ! -e $library ]] || export HIPR_LIBRARY=$library
unset HIPR_WORKER
run() { "$hipr" run --slurm "$@"; }

step "a program runs on a GPU of a job, and the job ends with it"
run "--gres=gpu:1" -- "$hipr" demo-program | grep -q '"device":"AMD Instinct MI300X (hipr emulated)"' || fail "the demo's program is wrong"
until_s 60 no_jobs || fail "a job is left"
code=0
run "--gres=gpu:1" -- sh -c '[ "$(squeue --noheader --states=running | wc -l)" = 1 ] && exit 7' || code=$?
[[ $code == 7 ]] || fail "the exit code is $code, not the program's"
until_s 60 no_jobs || fail "a job is left after a program that failed"

"$hipr" trace --slurm "--gres=gpu:1" --output "$folder/trace" -- "$hipr" demo-program >/dev/null 2>&1 || fail "hipr trace cannot have a job"
[[ -s $folder/trace ]] || fail "there is no trace"

step "two programs at once"
# Each waits for the other's job.
both="until [ \$(squeue --noheader --states=running | wc -l) = 2 ] || [ -e $folder/both ]; do sleep 0.1; done; touch $folder/both"
"$hipr" run --slurm "--gres=gpu:1" -- sh -c "$both" &
first=$!
run "--gres=gpu:1" -- sh -c "$both" || fail "the second program failed"
wait "$first" || fail "the first program failed"

step "what cannot be had is said"
said=$(run "--gres=gpu:9" -- true 2>&1) && fail "nine GPUs of two were given"
[[ $said == *"Slurm gives no worker: srun ended with exit code 1"* && $said == *"configuration is not available"* ]] || fail "it says: $said"
said=$(run 'no "end' -- true 2>&1) && fail "half a quotation was taken"
[[ $said == *"without its other one"* ]] || fail "it says: $said"
mkdir "$folder/bin"
ln -s "$(command -v sh)" "$folder/bin/sh"
said=$(PATH=$folder/bin "$hipr" run --slurm "--gres=gpu:1" -- true 2>&1) && fail "a worker without srun"
[[ $said == *"there is no srun on this machine"* ]] || fail "it says: $said"

step "it waits, and says for what"
"$hipr" run --slurm "--gres=gpu:2" -- sh -c "echo \$\$ >$folder/program.pid; exec sleep 600" &
holder=$!
is_held() { [[ $(squeue --noheader --states=running | wc -l) == 1 ]]; }
until_s 60 is_held || fail "the first program does not run"
"$hipr" run --slurm "--gres=gpu:1" -- true 2>"$folder/waits.log" &
waiter=$!
waits() { grep -qs 'waiting for Slurm for [0-9]* s: job [0-9]*, PENDING (Resources)' "$folder/waits.log"; }
until_s 60 waits || fail "it does not say that it waits: $(cat "$folder/waits.log")"

step "a program that waits is killed: its job is cancelled"
kill -KILL "$waiter"
wait "$waiter" 2>/dev/null || true
one_job() { [[ $(squeue --noheader | wc -l) == 1 ]]; }
until_s 60 one_job || fail "the job of a killed program waits for ever"

step "a program that runs is killed: its job ends"
kill -KILL "$holder"
wait "$holder" 2>/dev/null || true
until_s 60 no_jobs || fail "the job of a killed program is left"
kill "$(<"$folder/program.pid")"

step "a job that is cancelled: the program has an error, and ends"
said=$(run "--gres=gpu:1 --job-name=cancelled" -- python3 "$here/programs/cancelled.py" cancelled 2>&1) || fail "the program failed: $said"
[[ $said == *"error 709"* ]] || fail "the program saw: $said"
until_s 60 no_jobs || fail "the cancelled job is left"

step "a worker for many programs, by sbatch"
mkdir -p "$folder/path"
ln -s "$hipr" "$folder/path/hipr"
(cd "$folder" && PATH=$folder/path:$PATH sbatch --output="$folder/batch.log" "$here/../../packaging/slurm/hipr-worker.sbatch" >/dev/null)
is_invited() { grep -q '^invitation: ' "$folder/batch.log" 2>/dev/null; }
until_s 60 is_invited || fail "the worker invites nobody"
invitation=$(sed -n 's/^invitation: //p' "$folder/batch.log")
"$hipr" run --worker "$invitation" -- "$hipr" demo-program >/dev/null || fail "the worker's invitation cannot be used"
"$hipr" run --worker "${invitation%%/#*}" -- "$hipr" demo-program >/dev/null || fail "the worker cannot be used again"
scancel --name=hipr-worker
until_s 60 no_jobs || fail "the worker does not end"

# Programs that were killed leave the folder that shows the library; a worker, killed or not, leaves nothing.
left=$(find "$folder/tmp" -mindepth 1 -maxdepth 1 ! -name 'hipr-*')
[[ -z $left ]] || fail "workers have left $left"
step "all right"
