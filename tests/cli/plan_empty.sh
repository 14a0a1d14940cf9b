# SPDX-License-Identifier: Apache-2.0
# What removed the last plan: memory, the batch, or which of the values that are fixed.
try()
{
    orrery plan "$@"
    echo $?
}
on="gpt2 --machine dgx-h100:1 --seq 1024"
try llama-3-70b --machine dgx-h100:1 --batch 8 --seq 8192
try $on --batch 8 --reserve 80GiB
try $on --batch 7 --fix dp=8
try gpt2 --machine dgx-h100:1 --batch 8 --seq 1021 --fix cp=8
for fixed in tp=3 tp=8 dp=16 ep=2 micro-batch=3 cp=3,tp=2 chunks=3,pipeline=1f1b zero=1,dp=1,cp=1 \
    pp=1,pipeline=interleaved,chunks=2 tp=8,recompute=full tp=3,micro-batch=5; do
    try $on --batch 8 --fix $fixed
done
try $on --batch 8 --fix tq=3
try $on --batch 8 --fix zero=4
try $on --batch 8 --fix pipeline=fast
try gpt2 --machine dgx-h100:1 --price free
try gpt2 --machine dgx-h100:2 --devices 24 --batch 8
# No time at all: nothing was simulated.
try $on --batch 8 --max-time 1ns
try $on --batch 8 --max-time soon
