# SPDX-License-Identifier: Apache-2.0
# One rank of a set, for programs.
orrery gen data_parallel --ranks 4 -q -o step.orr
orrery info step.orr --rank 3 --top 2 --json | grep -v '"program"'
