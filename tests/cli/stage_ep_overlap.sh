# SPDX-License-Identifier: Apache-2.0
# --ep-overlap: a forward and a backward pass go through layers in turns, as Megatron-Core issues them, so that what travels to
# and from experts of one goes under what the other computes.
orrery -q stage qwen3-30b-a3b --layers 2 --dp 2 --ep 2 --tp 2 --batch 6 --seq 1024 --ep-overlap -o s.orr > /dev/null
orrery -q view json s.orr -r 0 -f jsonl > s.jsonl
exchanges() { # STREAM: names on it, in their order
    grep "\"stream\",\"int64Val\":\"$1\"" s.jsonl | sed -n 's/.*"name":"\(mb[^"]*\)","type":"COMM_COLL.*/\1/p'
}
echo "alone:"
exchanges 6
echo "in turns:"
exchanges 8

# Both compute in one stream: what follows a collective of tensor-parallel ranks waits for it, of whichever pass it is.
id=$(grep '"mb1.layer0.moe.scatter"' s.jsonl | sed 's/.*"id":"\([0-9]*\)".*/\1/')
echo "waiting for mb1.layer0.moe.scatter:"
sed -n "s/.*\"name\":\"\(mb[^\"]*\)\",\"type\":\"COMP_NODE\".*\"$id\".*/\1/p" s.jsonl

# The host does not catch up while tokens travel that the device does not wait for: where it is the limit, a network of a
# quarter of the rate makes no step shorter, and a dense one has no passes in turns.
orrery -q stage qwen3-30b-a3b --layers 4 --dp 8 --ep 8 --batch 64 --seq 2048 --dtype mxfp8 --ep-overlap --software megatron-core -o s.orr > /dev/null
for rate in 400 100; do
    printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [%d]\nlatency: [500]\n' $rate > net$rate.yml
    orrery -q run s.orr -t net$rate.yml --hardware h100 --json | sed -n 's/.*"simulated_ns": *\([0-9]*\).*/\1/p' | head -1 > $rate
done
awk -v fast="$(cat 400)" -v slow="$(cat 100)" 'BEGIN { print (fast > 0 && fast <= slow ? "not shorter" : "shorter: " fast " " slow) }'
orrery -q stage llama-3-8b --layers 2 --dp 2 --batch 4 --seq 512 --ep-overlap -o d.orr > /dev/null && orrery -q check d.orr > /dev/null && echo "dense: status $?"
# No more micro-batches than the warm-up takes: no pass is beside another, and nothing waits for ever.
for words in '1f1b --batch 16' '1f1b --batch 24' 'interleaved --chunks 2 --batch 32'; do
    orrery -q stage mixtral-8x7b --layers 8 --dp 8 --ep 8 --pp 4 --seq 512 --ep-overlap --pipeline $words -o w.orr >/dev/null
    orrery -q run w.orr --machine dgx-h100:4 | head -n 1 | cut -d' ' -f1-4
done
printf '0: F0 F1 B0 B1\n1: F0 F1 B0 B1\n' >own.txt
orrery -q stage mixtral-8x7b --layers 8 --pp 2 --batch 2 --seq 512 --order own.txt -o w.orr >/dev/null && echo 'own order'
orrery -q stage mixtral-8x7b --layers 8 --pp 2 --batch 2 --seq 512 --order own.txt --ep-overlap 2>&1
echo "status $?"
# A forward pass alone is a third of a step's work: it had an MFU of 101 %.
for words in '' --forward; do
    orrery stage -q llama-3-8b --seq 1024 $words | sed -n 's/.*, \([0-9.]* PFLOP\)/\1/p'
done
