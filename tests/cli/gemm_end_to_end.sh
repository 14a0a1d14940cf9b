# SPDX-License-Identifier: Apache-2.0
# Shapes to a simulated step in one line, for each example: the run takes at least as long as its compute.
printf 'topology: [Switch]\nnpus_count: [16]\nbandwidth: [100]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 4, "local-mem-bw": 1000, ' >sys.json
printf '"all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], ' >>sys.json
printf '"reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["direct"]}\n' >>sys.json
for name in resnet50 gpt3_block dlrm; do
    orrery gemm -e $name -n 16 -q | orrery convert text - --npus 16 -q -o $name.orr &&
        orrery run -q $name.orr -s sys.json -t net.yml --json >$name.json
    orrery gemm -e $name -n 16 --json >cost.json
    python3 - $name <<'END'
import json, sys
run, cost = json.load(open(sys.argv[1] + ".json")), json.load(open("cost.json"))
times = [layer[key]["in_table"] for layer in cost["layers"] for key in ("forward", "input_grad", "weight_grad")]
# The gradient of the network's inputs is not needed; a node that takes no time takes 1 ns (ASTRA-sim).
least = 1000 * (sum(times) - cost["layers"][0]["input_grad"]["in_table"])
compute = {rank["compute_ns"] for rank in run["per_rank"]}
print(sys.argv[1], run["status"], run["simulated_ns"] >= least, len(compute) == 1 and least <= compute.pop() <= least + times.count(0))
END
done
