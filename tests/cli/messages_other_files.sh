# SPDX-License-Identifier: Apache-2.0
# room: chakra
# Files that are something else: said what they are, and which command takes them; exchanged files are seen as such.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" plain . || exit 1
try() {
    "$@" 2>&1
    echo "status $?"
}
try orrery info host.json
try orrery info device.json
echo '<?xml version="1.0"?><algo name="ring" nchannels="1"></algo>' >plan.xml
try orrery info plan.xml
printf '<system version="1">\n  <cpu numaid="0"/>\n</system>\n' >topo.xml
try orrery info topo.xml
printf '<html>\n<p>This is a page.</p>\n</html>\n' >page.xml
try orrery info page.xml
echo 'some notes on what was measured, and when' >notes.txt
try orrery info notes.txt
echo '[[1, 2, 3], [[0, 1], [2, 3], [4, 5]]]' >memory_timeline.json
try orrery link memory_timeline.json -o x.et
echo '{"traceEvents": [[1, 2], 7, {"a": 1}]}' >events.json
try orrery link events.json -o x.et
try chakra_trace_link --rank 0 --chakra-host-trace device.json --chakra-device-trace host.json --output-file x.json
try orrery link -q device.json host.json -o linked.json
try orrery convert linked.json -o a.et
try orrery convert a.et -o a.jsonl
try orrery convert a.jsonl -o b.et
try orrery convert device.json -o x.et
try orrery convert notes.txt -o x.et
try orrery convert missing.json -o x.et
try orrery convert et -o x.et
ls
