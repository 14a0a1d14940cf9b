# SPDX-License-Identifier: Apache-2.0
# Each line that says a result cannot be: what, why, and what to do.  One case each, and none of the others beside it.
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [450]\nlatency: [500]\n' >net.yml
say() {
    echo "--- $1"
    orrery -q run "${@:2}" 2>&1 | grep 'implausible\|unknown key'
    orrery -q run "${@:2}" --json 2>/dev/null | python3 -c '
import json, sys
text = sys.stdin.read()
print("warnings in JSON:", len(json.loads(text)["warnings"]) if text else "none, refused")'
}
printf '{"all-reduce-implementation": ["ring"], "preferred-dataset-splits": 4, "active-chunks-per-dimension": 4}' >chunks.json
orrery -q gen all_reduce --ranks 8 --comm-size 1073741824 -o ar.orr
say "bus bandwidth above the link's" ar.orr -s chunks.json -t net.yml -n unaware
orrery -q stage llama-3-8b --layers 8 --dp 8 --seq 8192 --batch 64 -o step.orr >sizes
say "MFU above 65 %" step.orr --machine dgx-h100 --ideal
printf '{"peak-perf": 989, "local-mem-bw": 3350}' >none.json
say "compute of zero" step.orr -s none.json -t net.yml
printf '{"peak-perf": 989, "local-mem-bw": 3350, "roofline-enabledx": 1}' >typo.json
say "an unknown key" step.orr -s typo.json -t net.yml
orrery -q stage llama-3-8b --layers 8 --pp 8 --seq 8192 --batch 2 -o few.orr >sizes
say "a bubble above half" few.orr --machine dgx-h100
# Recorded durations, 1 ms, in which 64 GB of tensors come and go.
cat >fast.json <<'JSON'
{"format": "orrery-trace", "version": 1, "metadata": {"version": "1.0.0"}, "nodes": [
 {"id": "0", "name": "gemm", "type": "COMP_NODE", "durationMicros": "1000", "attr": [{"name": "is_cpu_op", "boolVal": false},
  {"name": "num_ops", "int64Val": "1000000000"}, {"name": "tensor_size", "int64Val": "64000000000"}]}]}
JSON
orrery -q convert et fast.json -o fast.orr
printf 'topology: [Switch]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [500]\n' >one.yml
say "a memory rate above the chip's" fast.orr -s none.json -t one.yml
echo "--- no false alarm: every machine of the list, and presets of models"
for machine in $(orrery machine list --json | python3 -c 'import json, sys; print(*[m["name"] for m in json.load(sys.stdin)["machines"]])'); do
    for model in gpt2 llama-3-8b mixtral-8x7b; do
        orrery -q stage $model --layers 2 --dp 4 --batch 16 --seq 1024 --zero 1 -o quiet.orr >sizes 2>&1 || continue
        orrery -q run quiet.orr --machine $machine | grep implausible | sed "s/^/$machine $model: /"
        echo "$machine" >>tried
    done
done
orrery -q serve llama-3-8b --tp 4 -p 512 -n 8 -o quiet.orr >sizes
orrery -q run quiet.orr --machine dgx-h100 | grep implausible
orrery -q run quiet.orr --machine dgx-h100 -n unaware | grep implausible
echo "$(sort -u tried | wc -l) machines, $(wc -l <tried) steps"
