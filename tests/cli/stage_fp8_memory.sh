# SPDX-License-Identifier: Apache-2.0
# What is kept in 8 bits: DeepSeek-V3 as it was trained fits into an H800 (40.4 GiB of activations: 17 micro-batches of 4
# layers, 155,648 bytes a token and layer), and in 16 bits does not.
v3="deepseek-v3 --pp 16 --dp 128 --ep 64 --batch 15360 --seq 4096 --dtype fp8 --fp8-scaling block --zero 1 --mtp
    --pipeline dualpipe --dispatch once --fp8-dispatch --recompute-parts norm,mla-up,activation --machine h800-deepseek"
for words in "--fp8-kept none --fp8-weights none" "" "--fp8-kept deepseek --grads-fp32 --moments-bf16"; do
    orrery stage -q $v3 $words | tail -4
done
# Products in 16 bits keep nothing in 8: so it is.
orrery stage -q gpt2 --fp8-kept none --fp8-weights none >none.txt
orrery stage -q gpt2 | cmp - none.txt && echo 'none: the same'
# Refused: what does not go together.
t() { orrery stage -q "$@"; echo "status $?"; }
t gpt2 --fp8-kept inputs
t gpt2 --fp8-weights both
t llama-3-8b --dtype fp8 --fp8-kept inputs --recompute operators
t llama-3-8b --dtype nvfp4 --fp8-kept activations
t llama-3-8b --dtype nvfp4 --fp8-weights only
t llama-3-8b --dtype fp8 --fp8-weights only --no-master
t llama-3-8b --moments-bf16 --no-master
t llama-3-8b --moments-bf16 --dtype fp32
t llama-3-8b --recompute-parts mla-up
