# SPDX-License-Identifier: Apache-2.0
# room: drawing, nsight
# Graphviz and SQLite are loaded by the commands that need them, and by no other: where they are broken, only these fail.
# simdjson is loaded for large JSON; where it is broken, that is read all the same.
orrery gen all_reduce --ranks 2 -q -o set.orr
mkdir broken
for name in $(grep -aoE 'lib(gvc|simdjson|sqlite3)\.so(\.[0-9]+)*' $ORR_BUILD/cli/orrery | sort -u); do
    echo nothing >broken/$name
done
ls broken | sed 's/\.so.*//'
printf 'command: gen\narguments: [all_reduce]\naxes: {ranks: [2]}\n' >sweep.yaml
for line in "info set.orr" "view dot set.orr --rank 0 -o a.dot" "view svg set.orr --rank 0 -o a.svg" "sweep sweep.yaml -o a.db"; do
    LD_LIBRARY_PATH=$PWD/broken orrery $line -q >out 2>&1
    echo "status $?"
    grep -o '[A-Z][A-Za-z]*.s librar[a-z]* cannot be loaded' out
done
test -e a.svg || echo nothing drawn
orrery view svg set.orr --rank 0 -q -o a.svg
orrery stage gpt2 --tp 2 --batch 8 -q -o step.orr >/dev/null
orrery run step.orr --machine dgx-h100 --timeline step.json -q >/dev/null
test $(wc -c <step.json) -gt 65536 || echo too small
orrery diff step.json step.json >with
LD_LIBRARY_PATH=$PWD/broken orrery diff step.json step.json >without
cmp with without
