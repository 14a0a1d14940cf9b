# SPDX-License-Identifier: Apache-2.0
# What cannot be meant.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" two_steps . || exit 1
try() {
    orrery link "$@"
    echo "status $?" >&2
}
try -o x.et
try host.json device.json
try host.json device.json host.json -o x.et
try --ranks . host.json -o x.orr
try --compat host.json -o x.json
try --compress host.json device.json -o x.et
try - host.json -o x.et
try --step two host.json device.json -o x.et
try --step 7 host.json device.json -o x.et
try -q --step 1 host.json device.json -o x.et
orrery check x.et
chakra_trace_link --chakra-host-trace host.json --chakra-device-trace device.json --output-file x.json
echo "status $?" >&2
chakra_trace_link --rank 0 --chakra-host-trace host.json --output-file x.json
echo "status $?" >&2
