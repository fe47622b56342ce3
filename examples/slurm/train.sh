#!/bin/sh
# Trains an experiment in eight processes on two machines. Submitted once more, it goes on where the last job stopped.
#
#   sbatch examples/slurm/train.sh configs/quickstart.yaml
#
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@120
set -eu
config=$1
name=$(sed -n "s/^name: *[\"']\{0,1\}\([A-Za-z0-9._-]*\).*/\1/p" "$config")
run=
newest=0
for each in "${TESSERA_RUNS:-runs}/$name"/*/; do # the newest that has begun: runs are numbered
    number=$(basename "$each")
    case $number in *[!0-9]*) continue ;; esac
    if [ -f "${each}config.resolved.yaml" ] && [ "$number" -gt "$newest" ]; then
        run=${each%/}
        newest=$number
    fi
done

# Slurm sends SIGUSR1 to this shell two minutes before the end. mpirun hands it on, and the ranks stop and save (exit code 3).
process=
trap 'if [ -n "$process" ]; then kill -USR1 "$process"; fi' USR1
if [ -n "$run" ]; then
    mpirun --bind-to none tessera resume "$run" &
else
    mpirun --bind-to none tessera train "$config" &
fi
process=$!
code=0
wait "$process" || code=$?
while kill -0 "$process" 2>/dev/null; do # the signal ended that wait
    code=0
    wait "$process" || code=$?
done
exit $code
