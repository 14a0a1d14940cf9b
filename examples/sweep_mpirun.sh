#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A sweep on the processes of mpirun: rank 0 hands out points, all four compute.  srun takes the same command line.
# Needs Debian's openmpi-bin; orrery itself needs no MPI.
set -eu
command -v mpirun >/dev/null || { echo "no mpirun: Debian's package is openmpi-bin" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >grid.yaml <<'END'
command: stage, run
options: {model: llama-3-8b, layers: 2, batch: 64, seq: 1024, machine: dgx-h100:8, dp: "{64 // (tp * pp)}"}
axes: {tp: [1, 2, 4, 8], pp: [1, 2], micro-batch: [1, 2]}
constraints: [64 % (tp * pp) == 0, 64 % (64 // (tp * pp) * micro_batch) == 0]
goal: min throughput.step_ns
END

# More processes than cores, and root, are fine for an example; on a cluster leave both out.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun --oversubscribe -n 4 orrery sweep grid.yaml
orrery sweep best grid.db --top 3

# The table is the same as with one process.
orrery -q sweep grid.yaml -o alone.db -j 1
orrery sweep export csv alone.db -o alone.csv
orrery sweep export csv grid.db | cmp - alone.csv

# Stopped early, as by the time limit of a job, then continued.
rm grid.db
timeout -s KILL 0.4 mpirun --oversubscribe -n 4 orrery -q sweep grid.yaml || true
mpirun --oversubscribe -n 4 orrery -q sweep grid.yaml
orrery sweep export csv grid.db | cmp - alone.csv
