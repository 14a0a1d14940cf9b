# SPDX-License-Identifier: Apache-2.0
# Parents in a cycle: the nodes concerned are named with their file, counted, in --json too, and an error with --strict.
# 20 and 21 are each other's parent, 30 is its own, 40 has one that is not there; 10 was measured, 11 hangs on it.
node() {
    printf '{"id": %d, "name": "%s", "ctrl_deps": %d, "inputs": {"values": [], "shapes": [], "types": []}, ' "$1" "$3" "$2"
    printf '"outputs": {"values": [], "shapes": [], "types": []}, "attrs": ['
    for a in rf_id=$1 fw_parent=0 seq_id=-1 scope=0 tid=1 fw_tid=0; do
        printf '{"name": "%s", "type": "int64", "value": %s}, ' "${a%=*}" "${a#*=}"
    done
    printf '{"name": "op_schema", "type": "string", "value": ""}]}'
}
host() {
    echo '{"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "", "start_ts": 0, "finish_ts": 9, "nodes": ['
    node 1 1 '[pytorch|profiler|execution_trace|process]'
    echo ,
    node 2 1 '[pytorch|profiler|execution_trace|thread]'
    for pair; do
        echo ,
        node "${pair%:*}" "${pair#*:}" "aten::n${pair%:*}"
    done
    echo ']}'
}
host 10:2 11:10 20:21 21:20 30:30 40:999 >host.json
host 10:2 $(seq -f '%g:99' 21 30) 99:10 >many.json
cat >device.json <<'EOF'
{"traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::n10", "pid": 1, "tid": 1, "ts": 5, "dur": 3, "args": {"External id": 7, "Record function id": 10}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1, "tid": 1, "ts": 0, "dur": 9}]}
EOF
echo "both" | tee /dev/stderr
orrery link host.json device.json -o both.json --json | grep -o '"later_nodes[^]]*\|"[a-z]*_*parents[a-z_]*": [0-9]*\|"no_root": [0-9]*'
echo "many" | tee /dev/stderr
orrery link many.json device.json -o many.et
echo "host alone" | tee /dev/stderr
orrery link host.json -o host.et --json | grep -o '"later_nodes[^]]*\|"[a-z]*_*parents[a-z_]*": [0-9]*'
echo "compat" | tee /dev/stderr
orrery link --compat host.json device.json -o compat.json --json | grep -o '"later_nodes[^]]*\|"[a-z]*_*parents[a-z_]*": [0-9]*\|"no_root": [0-9]*'
echo "old name" | tee /dev/stderr
chakra_trace_link --rank 0 --chakra-host-trace host.json --chakra-device-trace device.json --output-file old.json
cmp compat.json old.json && echo same
echo "strict" | tee /dev/stderr
orrery link --strict host.json device.json -o strict.et
echo "status $?: $(ls strict.et 2>/dev/null)"
orrery link --strict --compat host.json device.json -o strict.json
echo "status $?: $(ls strict.json 2>/dev/null)"
orrery link -q --strict host.json -o strict.et
echo "status $?: $(ls strict.et 2>/dev/null)"
echo "convert" | tee /dev/stderr
orrery convert pytorch host.json -o converted.et
