# SPDX-License-Identifier: Apache-2.0
# Numbers in names: left out, or kept.
orrery gen data_parallel --ranks 1 -q -o a.et
orrery info a.et --top 3 | sed -n '/^Operators by time/,/^$/p'
orrery info a.et --top 3 --by-name | sed -n '/^Operators by time/,/^$/p'
