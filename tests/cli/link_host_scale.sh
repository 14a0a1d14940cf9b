# SPDX-License-Identifier: Apache-2.0
# A measured step replays without the overhead of the profiler that measured it.
cat > system.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
 "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
 "all-to-all-implementation": ["ring"], "collective-optimization": "baseline", "local-mem-bw": 1000, "boost-mode": 0}
END
printf 'topology: [Switch]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [500]\n' > network.yml
replay() {
    echo "$*: $(orrery run -q step.et --system system.json --topology network.yml | head -n 1)"
}
make() {
    rm -rf in && mkdir in && python3 "$ORR_ROOT/tests/golden/torch_watched.py" "$@" in || exit 1
}
for cost in 0 4 40 160; do
    make $cost
    echo "== $cost ns for each byte written down"
    orrery link in/host.json in/device.json -o step.et 2>&1 | grep "host times"
    replay auto
    orrery link -q --host-scale 1 in/host.json in/device.json -o step.et && replay "as recorded"
done
echo "== the same from a linked file, which keeps what was recorded"
orrery link -q in/host.json in/device.json -o linked.json && orrery convert pytorch linked.json -o step.et 2>&1 | grep "host times"
replay auto
orrery convert -q pytorch linked.json --host-scale 0.5 -o step.et && replay "a half"
orrery link -q in/device.json -o step.et && replay "a device trace alone"
echo "== under the old name nothing changes"
chakra_trace_link --rank 0 --chakra-host-trace in/host.json --chakra-device-trace in/device.json --output-file old.json >old.txt 2>&1
orrery link -q --compat in/host.json in/device.json -o compat.json && cmp old.json compat.json && echo same
make --cpu 40
echo "== a host that computes"
orrery link in/host.json in/device.json -o step.et 2>&1 | grep "host times"
orrery link -q --json in/host.json in/device.json -o step.et | grep -o '"host_scale": {[^}]*}'
echo "== what cannot be meant"
for factor in 0 -1 fast 1e9 nan; do
    orrery link --host-scale $factor in/host.json in/device.json -o x.et
    echo "status $?"
done 2>&1
orrery link --host-scale 1 in/host.json in/device.json -o x.json 2>&1
orrery link --host-scale 1 --compat in/host.json in/device.json -o x.json 2>&1
orrery convert pytorch linked.json --compat --host-scale 1 -o x.et 2>&1
ls x.* 2>/dev/null
