# SPDX-License-Identifier: Apache-2.0
# A linked PyTorch trace, as a simulator wants it and as Chakra's converter does it: kernel 3 is behind operator 2, and, in ours, kernel
# 4 of the same stream behind it, and operator 5, which waited for 3, as well.
node() {
    printf '{"id": %s, "name": "%s", "ctrl_deps": %s, "inputs": {"values": [], "shapes": [], "types": []}, "outputs": {"values": [], ' "$1" "$2" "$3"
    printf '"shapes": [], "types": []}, "attrs": [{"name": "rf_id", "value": %s}, {"name": "fw_parent", "value": 0}, ' "$1"
    printf '{"name": "seq_id", "value": -1}, {"name": "scope", "value": 0}, {"name": "tid", "value": 1}, {"name": "fw_tid", "value": 0}, '
    printf '{"name": "op_schema", "value": ""}]%s}' "$4"
}
at() {
    printf ', "ts": %s, "inclusive_dur": %s, "exclusive_dur": %s' "$1" "$2" "$2"
}
{
    printf '{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "t", "start_ts": 1, "finish_ts": 2, "nodes": [\n'
    node 0 '[pytorch|profiler|execution_trace|process]' 0 ''
    printf ',\n'
    node 1 '[pytorch|profiler|execution_trace|thread]' 0 ''
    printf ',\n'
    node 2 aten::mm 1 "$(at 10 5)"
    printf ',\n'
    node 3 gemm 2 "$(at 20 30), \"cat\": \"kernel\", \"stream\": 7"
    printf ',\n'
    node 4 add 2 "$(at 50 4), \"cat\": \"kernel\", \"stream\": 7"
    printf ',\n'
    node 5 aten::item 1 "$(at 60 2), \"sync_dep\": [3, 9]"
    printf '\n]}\n'
} >linked.json
show() {
    orrery view json "$1" --format jsonl | sed 's/"attr".*//; s/"inputs".*//; 1d'
}
orrery convert pytorch linked.json -o ours.et
show ours.et
orrery check ours.et
gzip -k linked.json
orrery convert pytorch linked.json.gz --compat --json -o old.et
show old.et
chakra_converter -q PyTorch --input linked.json --output same.et --simulate
cmp old.et same.et && sed 's/.*\] //' debug.log | grep 'Node ID'
et_converter --input_type PyTorch --input_filename linked.json --output_filename early.et
cmp old.et early.et && echo the same
orrery convert pytorch linked.json --frequency 5 -o no.et
echo "exit $?"
sed 's/"id": 5/"id": 4/' linked.json >twice.json
orrery convert pytorch twice.json -o no.et
echo "exit $?"
orrery convert pytorch twice.json --rank -1 -o no.et
echo "exit $?"
[ -e no.et ] && echo "no.et was written"
:
