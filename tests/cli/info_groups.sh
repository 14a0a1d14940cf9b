# SPDX-License-Identifier: Apache-2.0
# Two groups of two ranks, four ranks: what a group moves is divided by its own ranks, as one rank alone says; a send of
# a pipeline, which names no source, comes from its own rank.
orrery -q stage gpt2 --tp 2 --dp 2 --batch 2 -o groups.orr >/dev/null
orrery info groups.orr | sed -n '/^Collectives/,/^$/p'
orrery info groups.orr --rank 0 | sed -n '/^Collectives/,/^$/p'
orrery -q stage gpt2 --pp 2 --dp 2 --batch 4 -o stages.orr >/dev/null
orrery info stages.orr | sed -n '/^Peers/,/^$/p'
