#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Slurm array of sweep_jobs/slurm_array.sh, and srun with several tasks, on a cluster of one node that this script
# starts on the loopback interface and stops afterwards.  Needs Debian's slurm-wlm; on a real cluster only the last part
# is needed.  If the daemons cannot start, it says so.
set -eu
PATH=$PATH:/usr/sbin:/sbin # Debian's path of the daemons
for program in slurmctld slurmd sbatch srun; do
    command -v "$program" >/dev/null || { echo "no $program: Debian's package is slurm-wlm" >&2; exit 77; }
done
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
chmod 755 "$dir"
stop() {
    for daemon in slurmd slurmctld; do
        [ ! -s "$dir/$daemon.pid" ] || kill "$(cat "$dir/$daemon.pid")" 2>/dev/null || true
    done
    sleep 1
    rm -rf "$dir"
}
trap stop EXIT
cd "$dir"
cp "$here/sweep_jobs/grid.yaml" "$here/sweep_jobs/slurm_array.sh" .

host=$(hostname -s)
mkdir state spool
export SLURM_CONF="$dir/slurm.conf"
cat >slurm.conf <<END
ClusterName=loopback
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$((20000 + $$ % 10000))
SlurmdPort=$((30000 + $$ % 10000))
AuthType=auth/none
CredType=cred/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
slurmctld >slurmctld.log 2>&1 || { echo "slurmctld cannot start here: $(tail -1 slurmctld.log)" >&2; exit 77; }
slurmd -N "$host" >slurmd.log 2>&1 || { echo "slurmd cannot start here: $(tail -1 slurmd.log)" >&2; exit 77; }
tries=0
until sinfo -h -o %t 2>/dev/null | grep -q idle; do
    tries=$((tries + 1))
    [ "$tries" -lt 30 ] || { echo "Slurm's node does not come up here: $(sinfo -h 2>&1 | tail -1)" >&2; exit 77; }
    sleep 1
done

# The rest is the same on any cluster.
timeout 40 sbatch --wait slurm_array.sh || {
    squeue -h -o %t | grep -q PD || exit 1
    echo "Slurm starts no jobs here: $(squeue -h -o %r | head -1)" >&2
    exit 77
}
orrery sweep merge grid.db grid.*-of-4.db
srun -n 2 --overcommit orrery sweep grid.yaml -o ranks.db

orrery -q sweep grid.yaml -o alone.db
orrery sweep export csv alone.db -o alone.csv
orrery sweep export csv grid.db | cmp - alone.csv
orrery sweep export csv ranks.db | cmp - alone.csv
