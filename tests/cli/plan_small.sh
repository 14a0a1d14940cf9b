# SPDX-License-Identifier: Apache-2.0
# Plans of a small model on one node: the best first, the same for any number of threads.
set -e
orrery plan gpt2 --machine dgx-h100:1 --batch 16 --seq 1024 --fix tp=2,recompute=none --top 3
orrery plan gpt2 --machine dgx-h100:1 --batch 16 --seq 1024 --fix tp=2,recompute=none --top 3 --threads 1 > one
orrery plan gpt2 --machine dgx-h100:1 --batch 16 --seq 1024 --fix tp=2,recompute=none --top 3 --threads 4 > four
cmp one four
