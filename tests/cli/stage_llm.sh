# SPDX-License-Identifier: Apache-2.0
# What a training step takes, for people and for programs; a set, files with their groups, and nothing at all.
orrery stage gpt2 --dp 4 --pp 2 --batch 16
orrery stage llama-3-70b --dp 8 --tp 2 --seq 4096 -o s.orr
orrery stage llama-3-8b --tp 2 --pp 2 --batch 2 --seq 1024 --json
orrery stage mixtral-8x7b --tp 2 --dp 2 --ep 2 --zero 1 --seq 512 -o files
cat files.json; echo
orrery stage gpt2 --pp 2 --batch 3 --pipeline zero-bubble --memory held.csv > /dev/null
cat held.csv
orrery stage gpt2 --memory no/such/folder.csv > /dev/null
ls
