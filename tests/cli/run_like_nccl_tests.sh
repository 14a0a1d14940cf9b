# SPDX-License-Identifier: Apache-2.0
# A collective alone takes as long in a run as in the table of nccl-tests, on every machine and at sizes on both sides of
# each change of algorithm and protocol.  In a ring's steps bytes also move during the latency; a run once waited for it
# after all bytes had moved: 144 MiB on four DGX B200 took 716 us, not 559.
for machine in dgx-h100:4 hgx-h200:1 dgx-a100:1 dgx-b200:1 dgx-b200:4 gb200-nvl72 mi300x:1; do
    for op in all_reduce all_gather reduce_scatter; do
        for size in 72K 24M 144M 576M; do
            orrery nccl-tests -m $machine --op $op -b $size -e $size --json >table.json || exit
            set -- $(sed -n 's/.*"ranks": \([0-9]*\).*/\1/p' table.json) $(sed -n 's/.*"size": \([0-9]*\),.*"time_us": \([0-9.]*\),.*/\1 \2/p' table.json)
            shard=$2
            [ $op = all_gather ] && shard=$(($2 / $1)) # each rank's part
            orrery gen -q $op --ranks $1 --comm-size $shard -o one.orr
            orrery run -q one.orr --machine $machine --json | sed -n 's/^  "simulated_ns": \([0-9]*\),/\1/p' |
                awk -v table=$3 -v what="$machine $op $size" '{
                    if (!($1 / 1000 < 1.002 * table && $1 / 1000 > 0.998 * table)) print what ": run " $1 / 1000 " us, nccl-tests " table }'
        done
    done
done
echo compared
