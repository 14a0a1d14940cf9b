# SPDX-License-Identifier: Apache-2.0
# A schedule on stdout, the words about a file, JSON, binary, the list of what a pattern takes.
orrery gen goal binomialtreebcast -n 3 -d 64 --root 1 -o -
orrery gen goal allreduce_ring --ranks 4 --datasize 400 -o ring.goal
orrery gen goal random_bisect -s 7 --seed 9 --json -o pairs.goal
orrery gen goal gather -n 2 -d 2KiB --nb 3us --nb-poll 1500 -o -
orrery gen goal dissemination -n 4 --binary -q -o d.bin
od -An -tx1 -N 14 d.bin
orrery gen goal --list pipelinedring
orrery gen goal --list --json linbarrier
ls
