# SPDX-License-Identifier: Apache-2.0
orrery gen -q all_reduce --ranks 4 -o ring.orr
orrery view json ring.orr
