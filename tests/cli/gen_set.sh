# SPDX-License-Identifier: Apache-2.0
# 32,768 ranks that are alike take as much room as one, and a table.
orrery gen data_parallel --ranks 32768 -o step.orr
test "$(wc -c <step.orr)" -lt 2000000 || echo "the set is large"
orrery gen data_parallel --ranks 2 -o plain.orr -q
orrery gen data_parallel --ranks 2 -o packed.orr --compress -q
test "$(wc -c <packed.orr)" -lt "$(wc -c <plain.orr)" || echo "nothing was gained"
