# Runs srun with the arguments; ends with its exit code. What the job prints goes to standard output. When standard input is closed, that of the
# job is, too: a job that runs ends by that. One that still waits for its resources, or does not end, is cancelled 5 seconds later.
command -v srun >/dev/null || exit 127
exec 4<&0 3>&1 >/dev/null
(exec 3>&-; read -r _ <&4) | srun "$@" >&3 3>&- 4<&- &
srun=$!
exec 3>&-
read -r _ <&4
(exec 2>/dev/null 4<&-; sleep 5; kill "$srun") &
late=$!
wait "$srun"
code=$?
kill "$late" 2>/dev/null
exit "$code"
