# SPDX-License-Identifier: Apache-2.0
# The figures, the schedule of whole calls, and both ways of it; nothing on standard output but what was asked for.
make=$ORR_BUILD/tests/unit/make_nsys
$make traces rounds=4 table=t.json
orrery nccl traces -s t.json -o own.goal --events calls.goal
head -n 4 own.goal
sed -n '4,16p' calls.goal
orrery nccl traces -s t.json --compat -o - | head -n 5
orrery nccl traces --json
$make lost rounds=8 lost=4
orrery nccl lost
$make quiet rounds=4 silent
orrery nccl quiet -m -o merged.goal
ls
