# SPDX-License-Identifier: Apache-2.0
# The first byte that is wrong, and nothing on standard output.
orrery gen all_reduce --ranks 1 -q -o a.et
head -c 40 a.et >cut.et
orrery info cut.et
