#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From a table of layer shapes to a simulated training step: cost of layers, workload, traces, run.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# A multi-layer perceptron on a batch of 4,096, and a custom chip.
cat >mlp.csv <<'END'
Layer,type,m,n,k
fc1,gemm,4096,8192,4096
act1,activation,4096,8192,
fc2,gemm,4096,8192,8192
act2,activation,4096,8192,
fc3,gemm,4096,1000,8192
END
cat >chip.yml <<'END'
name: my chip
arrays: 4
rows: 128
columns: 128
clock: 1GHz
memory_bandwidth: 1TB/s
END

# A cluster: 16 NPUs on one switch.
cat >network.yml <<'END'
topology: [Switch]
npus_count: [16]
bandwidth: [100]
latency: [500]
END
cat >system.json <<'END'
{"scheduling-policy": "LIFO", "preferred-dataset-splits": 4, "all-reduce-implementation": ["halvingDoubling"],
 "local-mem-bw": 1000}
END

# The table of costs goes to stderr, the workload to the pipe.
orrery gemm mlp.csv --npus 16 --hardware chip.yml | orrery convert text - --npus 16 --updates -o mlp.orr
orrery check mlp.orr
orrery run mlp.orr --system system.json --topology network.yml
