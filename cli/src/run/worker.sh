# Serves the GPUs that Slurm has given to this job to one client, who is invited on standard output, until standard input is closed. $0 is hipr.
folder=$(mktemp -d) || exit
exec 4<&0
HIPR_LOG=${HIPR_WORKER_LOG:-warn} "$0" worker --listen 0.0.0.0:0 --authorized "$folder/authorized" --key "$folder/key" --invite \
    ${HIPR_WORKER_OPTIONS:-} 4<&- &
worker=$!
trap 'kill "$worker"' TERM INT HUP
(exec 2>/dev/null; read -r _ <&4; kill "$worker") &
wait "$worker"
code=$?
# After a signal the first wait has ended before the worker.
wait "$worker"
rm -rf "$folder"
exit "$code"
