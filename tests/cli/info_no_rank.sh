# SPDX-License-Identifier: Apache-2.0
orrery gen all_reduce --ranks 2 -q -o a.orr
orrery info a.orr --rank 2
