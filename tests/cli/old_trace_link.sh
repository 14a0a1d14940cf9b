# SPDX-License-Identifier: Apache-2.0
# room: chakra
# chakra_trace_link: its two lines, and its refusals with a place.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" plain . || exit 1
chakra_trace_link --rank 3 --chakra-host-trace host.json --chakra-device-trace device.json --output-file linked.json
echo "status $?" >&2
sed 's/ProfilerStep/Step/' device.json > no_step.json
chakra_trace_link --rank 0 --chakra-host-trace host.json --chakra-device-trace no_step.json --output-file x.json
echo "status $?" >&2
sed 's/1.1.1-chakra.0.0.4/9.9.9/' host.json > newer.json
chakra_trace_link --rank 0 --chakra-host-trace newer.json --chakra-device-trace device.json --output-file x.json
echo "status $?" >&2
ls linked.json && test ! -e x.json
