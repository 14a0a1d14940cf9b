# SPDX-License-Identifier: Apache-2.0
# Equal ranks share a row of the table; every second one here.
mkdir traces
orrery gen one_comp_node --ranks 1 -q -o a.et
orrery gen two_comp_nodes_dependent --ranks 1 -q -o b.et
for rank in 0 2 4 6; do cp a.et traces/t.$rank.et; done
for rank in 1 3 5; do cp b.et traces/t.$rank.et; done
orrery info traces --per-rank | sed -n '/^Ranks/,$p'
