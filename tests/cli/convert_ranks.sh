# SPDX-License-Identifier: Apache-2.0
# Some ranks of a set, counted from 0 afterwards.
orrery gen -q send_recv_ring --ranks 4 -o ring
orrery convert -q et ring --ranks 1-2 -o part
cmp ring.1.et part.0.et && cmp ring.2.et part.1.et && ls part*
orrery convert -q et ring --ranks 3 -o part.orr
orrery view json part.orr -f jsonl >a
orrery view json ring.3.et -f jsonl >b
cmp a b && echo same
