# SPDX-License-Identifier: Apache-2.0
# What removed the last plan.
orrery plan llama-3-70b --machine dgx-h100:1 --batch 8 --seq 8192
echo $?
orrery plan gpt2 --machine dgx-h100:1 --batch 7 --seq 1024 --fix dp=8
echo $?
orrery plan gpt2 --machine dgx-h100:1 --batch 8 --seq 1024 --fix tp=3
echo $?
orrery plan gpt2 --machine dgx-h100:1 --batch 8 --seq 1024 --fix tq=3
echo $?
orrery plan gpt2 --machine dgx-h100:1 --batch 8 --seq 1024 --fix zero=4
echo $?
orrery plan gpt2 --machine dgx-h100:1 --price free
echo $?
