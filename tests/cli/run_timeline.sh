# SPDX-License-Identifier: Apache-2.0
# Timelines for Perfetto: valid JSON with what it needs, plain and packed, twice the same.
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 2,
 "all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q compare_pipeline_parallel --ranks 4 -o pipe.orr
orrery run -q pipe.orr -s sys.json -t net.yml --timeline one.json >/dev/null
orrery run -q pipe.orr -s sys.json -t net.yml --timeline two.json.gz >/dev/null
gzip -dc two.json.gz | cmp - one.json
orrery gen -q three_layer_data_parallel --ranks 4 -o step.orr
orrery run -q step.orr -s sys.json -t net.yml --timeline phases.json --timeline-detail phases >/dev/null
orrery run -q step.orr -s sys.json -t net.yml --timeline - -q | tail -1
cat >look.py <<'END'
import collections, json, sys
for path in sys.argv[1:]:
    events = json.load(open(path))["traceEvents"]
    for e in events:
        assert e["ph"] in "MXsfC" and isinstance(e["pid"], int) and e["name"], e
        assert e["ph"] == "M" or e["ts"] >= 0, e
        assert e["ph"] != "X" or e["dur"] >= 0 and "tid" in e, e
    spans = [e for e in events if e["ph"] == "X"]
    for e in events:  # both ends of an arrow lie inside a span
        assert e["ph"] not in "sf" or any(
            (s["pid"], s["tid"]) == (e["pid"], e["tid"]) and s["ts"] <= e["ts"] <= s["ts"] + s["dur"] for s in spans), e
    names = sorted({e["args"]["name"] for e in events if e["name"] == "thread_name"})
    print(path, dict(sorted(collections.Counter(e["ph"] for e in events).items())), names)
    print(dict(sorted(collections.Counter(e["cat"] for e in spans).items())))
END
python3 look.py one.json phases.json
