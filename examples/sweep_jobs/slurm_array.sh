#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#SBATCH --job-name=orrery-sweep
#SBATCH --array=1-4
#SBATCH --ntasks=1
# A sweep as a Slurm array, one shard per task:
#
#     sbatch --wait slurm_array.sh && orrery sweep merge grid.db grid.*-of-4.db
#
# A task that hits its time limit is submitted again and continues where it was.  With one job of many tasks instead:
#
#     srun -n 64 orrery sweep grid.yaml
set -eu
orrery -q sweep grid.yaml --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" -j "${SLURM_CPUS_PER_TASK:-1}"
