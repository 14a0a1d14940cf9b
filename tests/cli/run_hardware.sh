# SPDX-License-Identifier: Apache-2.0
# The same traces on two chips and with two hosts: nodes have kernels, the roofline of a system file does not count.
orrery stage -q gpt2 --software torch-eager --layers 2 --vocab 1024 --seq 128 -o step.orr >made.txt
orrery stage -q gpt2 --software cuda-graph --layers 2 --vocab 1024 --seq 128 -o graph.orr >made.txt
echo '{"roofline-enabled": 1, "peak-perf": 1, "local-mem-bw": 1, "scheduling-policy": "LIFO"}' >slow.json
printf 'topology: [ Switch ]\nnpus_count: [ 1 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n' >one.yml
time_of() {
    orrery run "$@" --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p'
}
h200=$(time_of graph.orr --hardware h200)
a100=$(time_of graph.orr --hardware a100)
eager=$(time_of step.orr --hardware h200)
test "$h200" -lt "$a100" && echo "an A100 is slower"
test "$eager" -gt "$((h200 * 2))" && echo "eager is bound by the host"
test "$(time_of step.orr --hardware h200 --software cuda-graph)" = "$h200" && echo "the host can be changed"
test "$(time_of graph.orr --hardware h200 -s slow.json -t one.yml)" = "$h200" && echo "the roofline does not count"
orrery stage -q gpt2 --software megatron-2021 --layers 2 --vocab 1024 --seq 128 --batch 4 --micro-batch 1 -o four.orr >made.txt
each=$(($(time_of four.orr --hardware a100 --software megatron-deepspeed) - $(time_of four.orr --hardware a100)))
echo "loading four micro-batches: $((each / 1000000)) ms"
orrery view -q json graph.orr -o graph.json && grep -o 'gemm bf16 [^";]*' graph.json | sort -u | head -3
orrery gen -q one_comp_node -o none && orrery run none --hardware h200
echo "exit $?"
orrery run graph.orr --hardware h2000
echo "exit $?"
orrery run graph.orr --hardware h200 --software none
echo "exit $?"
orrery stage gpt2 --software nobody
echo "exit $?"
