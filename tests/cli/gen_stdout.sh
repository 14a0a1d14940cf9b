# SPDX-License-Identifier: Apache-2.0
# One compute node of 300 us: length 7, version 1.0.0; length 32 = name 11, type 2, duration 3, is_cpu_op 16.
orrery gen one_comp_node --runtime 300 -o - | od -An -tx1
