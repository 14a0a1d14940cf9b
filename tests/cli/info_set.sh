# SPDX-License-Identifier: Apache-2.0
# A set of equal ranks: every figure counts all of them.
orrery gen data_parallel --ranks 4 -q -o step.orr
orrery info step.orr | sed "s/read by orrery .*/read by orrery/"
