# SPDX-License-Identifier: Apache-2.0
# "bytes per rank" is per member of the group: once it was divided by the ranks of the job.  75 calls of 768 KiB: 56.3 MiB.
orrery stage -q gpt2 --tp 2 --dp 4 --batch 4 -o t.orr >/dev/null
orrery info t.orr | grep ' ALL_GATHER  *2 ' | sort -u | head -1
orrery info t.orr --rank 0 | grep ' ALL_GATHER  *2 '
# A rank of which a receiver knows the sender by name.
orrery stage -q gpt2 --pp 2 --dp 2 --batch 4 -o p.orr >/dev/null
orrery info p.orr | sed -n '/^Peers/,/^$/p'
