# SPDX-License-Identifier: Apache-2.0
# What does not go together is said before anything is made.
for words in "" "--compat gpt2" "gpt2 --dmodel 768" "--compat --zero 1" "gpt3" "gpt2 --pp 15" "gpt2 --tp 5 --seq 1000" \
    "gpt2 --batch 3 --dp 2" "gpt2 --dtype int4" "gpt2 --bucket 3x" "gpt2 --seq 4096" "gpt2 --micro-batch 0" \
    "mixtral-8x7b --tp 2 --no-sequence-parallel" "gpt2 -o step.et.gz -z"; do
    orrery stage $words
    echo "status $?"
done
ls
