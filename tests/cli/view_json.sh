# SPDX-License-Identifier: Apache-2.0
# One small trace in each form; the second rank of a set.
orrery gen -q two_comp_nodes_dependent --ranks 2 -o two
orrery view json two.0.et
orrery view json two --rank 1 --format jsonl
orrery view json two.0.et -f concat
