# SPDX-License-Identifier: Apache-2.0
# A single trace does not say of how many ranks it is one.
orrery gen all_reduce --ranks 1 -q -o a.et
orrery info a.et | sed -n '/^Bytes moved/,/^$/p'
orrery info a.et --ranks 8 | sed -n '/^Bytes moved/,/^$/p'
