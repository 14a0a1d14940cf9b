#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sweeps: the overhead of a point beyond its run, ten thousand points of 1,024 ranks, and mpirun -n 2 compared with one
# process.  Called by bench/run with the programs first in PATH; ORR_BENCH_DIR is a folder for files.  POINTS=N: another
# number than 10,000 (10,176, to be exact).
set -eu
cd "${ORR_BENCH_DIR:-$(mktemp -d)}"
points=${POINTS:-10000}
figure() { # NAME: of the summary in sum.json
    sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" sum.json
}

# Points that take microseconds, one worker: everything but computing is overhead.
cat >cheap.yaml <<'X'
command: chip time h100
arguments: ["gemm bf16 m={m} n=128 k=128"]
variables: {m: {from: 1, to: 4000}}
X
orrery -q sweep cheap.yaml -j 1 --json >sum.json
awk -v wall="$(figure wall_s)" -v run="$(figure computing_s)" 'BEGIN {
    printf "sweep: overhead per point                %8.3f ms   (4,000 points, 1 worker: %.2f s, of which %.2f s computing)\n",
        (wall - run) / 4000 * 1000, wall, run }'

# 1,024 ranks, 8 layers.
cat >grid.yaml <<'X'
command: stage, run
options: {model: llama-3-8b, layers: 8, batch: 1024, machine: dgx-h100:128, dp: "{1024 // (tp * pp)}"}
axes: {tp: [1, 2, 4, 8], pp: [1, 2, 4, 8], zero: [0, 1], recompute: [none, full, selective], seq: {from: 1024, to: 7744, step: 64}}
constraints: [1024 % dp == 0]
goal: min throughput.step_ns
X
[ "$points" = 10000 ] || sed -i "s/to: 7744/to: $((960 + (points + 95) / 96 * 64))/" grid.yaml
orrery -q sweep grid.yaml --json >sum.json
[ "$(figure failed)" = 0 ]
awk -v n="$(figure points)" -v wall="$(figure wall_s)" -v cpu="$(figure cpu_s)" -v w="$(figure workers)" 'BEGIN {
    printf "sweep: %d points, 1,024 ranks, 8 layers  %8.1f s    (%d workers; %.2f ms CPU per point: %.0f s for 10,000 on two free cores)\n",
        n, wall, w, cpu / n * 1000, cpu / n * 10000 / 2 }'

# The same command under mpirun, compared with one worker.  On a busy machine wall times mean nothing; CPU time per
# point, how evenly it is spread and how long workers wait for points do, and give the ratio on free cores.
command -v mpirun >/dev/null || { echo "sweep: mpirun is not installed (tools/setup.sh cluster)"; exit 0; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
sed -i 's/to: [0-9]*, step/to: 1472, step/' grid.yaml
orrery -q sweep grid.yaml -j 1 -o one.db --json >sum.json
one=$(figure wall_s) one_cpu=$(figure cpu_s)
mpirun --oversubscribe --bind-to none -n 2 orrery -q sweep grid.yaml -o two.db --json >sum.json
orrery sweep export csv one.db -o one.csv
orrery sweep export csv two.db | cmp - one.csv
awk -v one="$one" -v two="$(figure wall_s)" -v n="$(figure points)" -v a="$one_cpu" -v b="$(figure cpu_s)" \
    -v most="$(figure most_cpu_s)" -v waited="$(figure waited_s)" 'BEGIN {
    printf "sweep: mpirun -n 2 against one process   %8.2f x    (%.1f s and %.1f s)\n", one / two, one, two
    printf "sweep: the same by CPU time              %8.2f x    (%.2f and %.2f ms per point; busier worker %.0f %%, waiting %.3f s)\n",
        a / (most + waited / 2), a / n * 1000, b / n * 1000, most / b * 100, waited }'
