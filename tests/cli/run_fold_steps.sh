# SPDX-License-Identifier: Apache-2.0
# Steps in a row: a collective may follow another at once for some ranks and later for others, which does not set them
# apart; one step and a recording of it are enough for a hundred.
cat >sys.json <<'END'
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 2, "preferred-dataset-splits": 4,
 "collective-optimization": "localBWAware", "local-mem-bw": 3350, "peak-perf": 989, "roofline-enabled": 1,
 "all-reduce-implementation": ["ring", "ring"], "all-gather-implementation": ["ring", "ring"],
 "reduce-scatter-implementation": ["ring", "ring"], "all-to-all-implementation": ["direct", "direct"]}
END
cat >net.yml <<'END'
topology: [ Switch, Switch ]
npus_count: [ 8, 128 ]
bandwidth: [ 450.0, 50.0 ]
latency: [ 500.0, 5000.0 ]
END
orrery stage -q llama-3-70b --tp 8 --pp 4 --dp 32 --seq 8192 --batch 1024 -o step.orr >/dev/null
orrery run -q step.orr -n unaware -s sys.json -t net.yml --steps 100 --fold-why 2>&1 | grep -e after -e folding
