# SPDX-License-Identifier: Apache-2.0
# Compute includes waits for the host; a line says so where they are a tenth of it. Without them, the kernels of a step take as
# long as under CUDA graphs.
orrery -q stage gpt2 --layers 4 --dp 2 --batch 2 --seq 256 --software torch-eager -o small.orr > /dev/null
orrery -q run small.orr --machine dgx-b200 | grep -c 'waits for the host to issue kernels$'
orrery -q run small.orr --machine dgx-b200 --software cuda-graph | grep -c 'waits for the host'
number() { sed -n "s/.*\"$1\": *\([0-9.e-]*\).*/\1/p" "$2" | head -1; }
orrery -q run small.orr --machine dgx-b200 --json > eager.json
orrery -q run small.orr --machine dgx-b200 --software cuda-graph --json > graph.json
compute() { tr -d '\n' < "$1" | sed 's/.*"compute_ns": *{\([^}]*\)}.*/\1/' | sed 's/.*"mean": *\([0-9.e+]*\).*/\1/'; }
awk -v share="$(number host_wait_share eager.json)" -v none="$(number host_wait_share graph.json)" \
    -v eager="$(compute eager.json)" -v graph="$(compute graph.json)" 'BEGIN {
    work = eager * (1 - share)
    print (share > 0.1 && share < 1 ? "eager waits" : "eager: " share)
    print (none < 0.1 ? "graphs do not" : "graphs: " none)
    print (work > 0 && work / (graph * (1 - none)) > 0.98 && work / (graph * (1 - none)) < 1.02 ? "the work is the same" : "work: " work " " graph)
}'
