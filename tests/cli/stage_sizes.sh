# SPDX-License-Identifier: Apache-2.0
# Sizes of one's own without a file, notes on what is unusual, sizes as people type them.
orrery stage gpt2 --layers 24
orrery stage gpt2 --layers 24 --hidden 1024 --heads 16 | head -1
orrery stage llama-3-8b --layers 4 --kv-heads 4 --ffn 8192 --vocab 32000 --seq 16384 --batch 8 --pp 2 | head -3
orrery stage llama-3-8b --layers 4 --seq 1024 --pp 4 | head -2
for size in 80GB 80G 80gb 80g 74.5GiB; do
    orrery stage gpt2 --layers 1 --device-memory $size | tail -1
done
orrery stage gpt2 --layers 1 --device-memory 80Gb
echo "status $?"
orrery stage gpt2 --heads 5
echo "status $?"
orrery serve gpt2 -p 10 -n 2 --device-memory 80g | head -2
