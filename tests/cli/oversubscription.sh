# SPDX-License-Identifier: Apache-2.0
# Oversubscribed leaves: orrery run and nccl-tests agree on all-to-alls, and on rings where each node has its own leaf.
for leaf in 1 2; do
    machine=dgx-h100:4,fabric.kind=leaf-spine,fabric.nodes_per_leaf=$leaf,fabric.oversubscription=4
    for op in all_to_all reduce_scatter; do
        orrery gen -q $op --ranks 32 --comm-size 268435456 -o one.orr
        run=$(orrery run -q one.orr --machine $machine --json | sed -n 's/^  "simulated_ns": \([0-9]*\),/\1/p')
        table=$(orrery nccl-tests -m $machine --op "$(echo $op | sed s/all_to_all/alltoall/)" -b 256M -e 256M --json | sed -n 's/.*"time_us": \([0-9.]*\).*/\1/p')
        # 24 of 32 parts leave a node at 50 GB/s; of them 3 of 3 or 2 of 3 leave the leaf, at a quarter of the rate.
        # A ring of 8 rails: 31 of 32 parts, of a leaf's nodes one sends them up.
        awk -v op=$op -v leaf=$leaf -v run="$run" -v table="$table" 'BEGIN {
            least = op == "all_to_all" ? 268435456 * 24 / 32 / 50 * 4 * (4 - leaf) / 3 : 268435456 * 31 / 32 / 400 * 4 / leaf
            is_right = table * 1000 >= least && table * 1000 < 1.4 * least
            how = run < table * 999 ? "shorter" : run <= table * 1001 ? "the same" : "longer"
            printf "%s, %d per leaf: at least %.0f us; nccl-tests %s, run %s\n", op, leaf, least / 1000, is_right ? "plausible" : table, how
        }'
    done
done
