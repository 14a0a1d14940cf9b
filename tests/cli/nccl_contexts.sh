# SPDX-License-Identifier: Apache-2.0
# room: nccl_generator
# The old generator's tags: 4 digits of the message and 5 of the context, other widths, contexts of one's own.
make=$ORR_BUILD/tests/unit/make_nsys
$make traces rounds=4 table=t.json
tags() {
    grep -o 'tag [0-9]*' "$1" | sort | uniq -c | sort -k3 | head -4
}
old() {
    nccl_goal_generator -q -i traces -s t.json -l t.json -o "$@"
}
old plain && tags plain/output.goal
old wide --id_width 6 --context_width 7 && tags wide/output.goal
printf 'communicator,call,context\n*,*,7\n' >all.csv
old own --contexts all.csv && tags own/output.goal
orrery nccl traces -s t.json -l t.json --compat --contexts all.csv -o same.goal -q >figures.txt
cmp same.goal own/output.goal && echo same
orrery nccl traces -s t.json -l t.json --compat --id-width 6 --context-width 7 -o same.goal -q >figures.txt
cmp same.goal wide/output.goal && echo same
try() {
    orrery nccl traces -s t.json "$@" -o no.goal 2>&1
    echo "  status $?"
}
try --contexts all.csv
try --compat --tag-bits 32
printf 'communicator,call,context\n*,3,7\n' >bad.csv && try --compat --contexts bad.csv
printf 'communicator,call,context\n*,*,700000\n' >bad.csv && try --compat --contexts bad.csv
printf 'communicator,context\n' >bad.csv && try --compat --contexts bad.csv
printf 'communicator,call,context\n*,*,1\n*,*,2\n' >bad.csv && try --compat --contexts bad.csv
try --compat --contexts none.csv
