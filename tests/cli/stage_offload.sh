# SPDX-License-Identifier: Apache-2.0
# Activations on the host: copies both ways beside compute, at the rate of the machine's link.
# A layer of Llama 3 8B keeps 1.2254 GB of 8,192 tokens, 22.3 ms at 55 GB/s; its forward pass takes 7 ms, backward 15 ms.
# Four copies fit under 32 layers. Of 16 layers two cover one, forward not all of it. With 31 the copies are the step:
# 2 x 31 x 22.3 ms = 1.38 s, and what is not under them.
step() {
    orrery stage -q llama-3-8b --dp 8 --zero 1 --batch 8 --seq 8192 -o step.orr "$@" | grep '^0 '
    orrery check -q step.orr
    orrery run -q step.orr --machine hgx-h200:1 | grep -Eo '^step [^(]*|^remote.*'
}
step
step --offload-layers 4
step --offload-layers 16
step --offload-layers 31
# Faster than any copy, or slow: 2 x 31 x 1.2254 GB / 1 GB/s = 76.0 s.
orrery run -q step.orr --machine hgx-h200:1,host_bandwidth=9000GB/s | grep -o '^step [^(]*'
orrery run -q step.orr --machine hgx-h200:1,host_bandwidth=1GB/s | grep -o '^step [^(]*'
# On every network, folded or not, the same.
for words in "-n unaware" "-n unaware --fold off" "-n aware" "-n fluid --fold off"; do
    orrery run -q step.orr --machine hgx-h200:1 $words | grep '^remote'
done
# In a pipeline, with experts beside each other.
orrery stage -q mixtral-8x7b --pp 2 --dp 8 --ep 8 --batch 32 --seq 1024 --ep-overlap --pipeline interleaved --offload-layers 4 -o pair.orr | grep '^[01] '
orrery check -q pair.orr && orrery run -q pair.orr --machine dgx-h100:2 | grep -Eo '^step [^(]*|^remote.*'
t() { orrery stage -q gpt2 "$@"; echo "status $?"; }
t --offload-percent 50
t --offload-layers 2 --offload-percent 101
t --offload-layers 13
t --offload-layers 2 --forward
t --offload-layers 2 --pp 2 --batch 4 --pipeline zero-bubble
orrery run -q step.orr --machine tpu-v5p:2 2>&1 | tail -1
