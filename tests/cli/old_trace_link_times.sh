# SPDX-License-Identifier: Apache-2.0
# room: chakra
# chakra_trace_link takes device times of any size, as Python has integers of any size: what it writes for times 2^53 us
# and more away is what it writes for the plain ones, but for `ts`, which is exact; and chakra_converter takes that.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" plain . || exit 1
link() {
    chakra_trace_link --rank 0 --chakra-host-trace host.json --chakra-device-trace "$1" --output-file "$2" 2>/dev/null
}
link device.json plain.json || exit 1
for shift in 2**52 2**53-1000003 2**53+1 2**60+1 2**62+3 2**63-2000000; do
    python3 - "$shift" <<'EOF'
import json, sys
device = json.load(open("device.json"))
for event in device["traceEvents"]:
    event["ts"] += eval(sys.argv[1])
json.dump(device, open("far.json", "w"))
EOF
    link far.json far_linked.json && python3 - "$shift" <<'EOF'
import json, sys
shift = eval(sys.argv[1])
near, far = json.load(open("plain.json")), json.load(open("far_linked.json"))
for node in far["nodes"]:
    if "ts" in node:
        node["ts"] -= shift
print(sys.argv[1], "same" if near == far else "different")
EOF
    chakra_converter PyTorch --input far_linked.json --output far 2>/dev/null && cmp far far_before 2>/dev/null
    mv far far_before || echo "not converted"
done
python3 - <<'EOF'
import json
device = json.load(open("device.json"))
for event in device["traceEvents"]:
    event["ts"] += 10**30
json.dump(device, open("far.json", "w"))
EOF
link far.json far_linked.json && grep -o '"ts": 10000000000000000000000010[0-9]*' far_linked.json | head -n 2
