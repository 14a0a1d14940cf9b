#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Requests that arrive one by one, served by a model on 6 GPUs: prefill on 2 of them, decode on 4.  Generates the
# traces, checks them, and simulates them on a cluster.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

cat >requests.csv <<'END'
arrival_us,prompt,output
0,812,12
3100,95,20
9800,2210,8
14400,340,32
15200,1540,4
31900,60,16
END

# A cluster: 6 GPUs on one switch; a roofline like the one of the estimate.
cat >network.yml <<'END'
topology: [Switch]
npus_count: [6]
bandwidth: [400]
latency: [500]
END
cat >system.json <<'END'
{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"],
 "all-gather-implementation": ["ring"], "local-mem-bw": 3350, "peak-perf": 989, "roofline-enabled": 1}
END

orrery serve llama-3-8b --requests requests.csv --chunk 512 --tp 2 --decode-tp 4 -o serve.orr
orrery check serve.orr
orrery run serve.orr --system system.json --topology network.yml
