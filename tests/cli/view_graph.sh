# SPDX-License-Identifier: Apache-2.0
# room: chakra, drawing
# Names that hold markup, quotes and control characters come out escaped in every form.
printf '%s\n' '{"format":"orrery-trace","version":1,"metadata":{"version":"1.0.0"}}' \
    '{"id":"1","name":"<b>\"x\"\\u0001&\\\\","type":"COMP_NODE","durationMicros":"7"}' \
    '{"id":"2","name":"graph","type":"COMP_NODE","dataDeps":["1","1"],"ctrlDeps":["9"]}' |
    sed 's/\\\\u/\\u/' >odd.jsonl
orrery view dot --compat odd.jsonl
orrery view graphml odd.jsonl && echo
orrery view svg --compat odd.jsonl -o odd.svg
grep -c '<b>' odd.svg
orrery view dott odd.jsonl
echo "exit $?"
