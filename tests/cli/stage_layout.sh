# SPDX-License-Identifier: Apache-2.0
# Stages without layers, and layouts in Megatron-Core's notation: the same step as with --first-layers and --last-layers,
# and what cannot be is refused with a reason.
rows() { grep '^[0-9]' | cut -c1-43; }
orrery stage -q gpt2 --pp 14 --batch 14 -o fourteen.orr | rows
orrery check -q fourteen.orr
orrery stage -q gpt2 --pp 4 --first-layers 0 --last-layers 3 --batch 8 -o given.orr | rows
orrery stage -q gpt2 --pp 4 --layout 'E|(tt, t)*1|(ttt)*3|L' --batch 8 -o other.orr | rows
orrery stage -q gpt2 --pp 4 --layout 'E|t*5|t*4|t*3L' --batch 8 -o layout.orr >/dev/null
for file in given layout; do
    orrery view json $file.orr --rank 3 | sed 's/last_layers=3 bare_first=1 //; s/bare_first=1 //; s/last_layers=3 //; s/layout=[^ ]* //' >$file.json
done
cmp given.json layout.json && echo same
# A stage without anything passes on what it receives.
orrery stage -q gpt2 --pp 8 --batch 16 --zero 1 --layout 'E|t*6||ttt||tt|t|L' -o empty.orr | rows
orrery check -q empty.orr && orrery run -q empty.orr --machine dgx-h100 | head -1 | cut -d' ' -f1-4
# What-ifs of a layout keep it.
orrery report -q empty.orr --machine dgx-h100 -o page.html 2>/dev/null && grep -c 'micro-batches of 2 instead of 1' page.html
t() { orrery stage -q gpt2 --pp 4 --batch 8 "$@"; echo "status $?"; }
t --layout 'Et*12'
t --layout 't*12L'
t --layout 'Et*3|t*9|L'
t --layout 'Et*3|t*8||L'
t --layout 'Et*3|(t(t*8|)*2|L'
t --layout 'Et*0|L'
t --layout 'Et*3|x|t*9|L'
t --layout 'E(tttttttttt)*1000000|L'
t --layout 'E|t*6|t*6|mL'
t --layout 'E|t*6|t*6|L' --last-layers 2
t --layout 'E|t*6|m|t*6L'
t --first-layers 0 --last-layers 11
t --first-layers 13
t --first-layers 0 --pp 1
t --pp 15
t --layout 'E|t*6|t*6|L' --pipeline interleaved --chunks 2
# MTP layers before the stage of the loss: the layout of Megatron-Core's guide.
orrery stage -q deepseek-v3 --pp 8 --dp 32 --ep 32 --batch 256 --dtype fp8 --zero 1 --pipeline interleaved --mtp \
    --layout 'Et*3|(tt|)*29,m|L' -o guide.orr | rows
orrery check -q guide.orr && orrery run -q guide.orr --machine dgx-h100 | head -1 | cut -d' ' -f1-4
orrery stage -q deepseek-v3 --pp 8 --mtp --pipeline dualpipe --batch 16 --layout 'Et*8|(t*9|)*5,t*8,m|L'; echo "status $?"
orrery stage -q deepseek-v3 --pp 4 --mtp --layout 'Et*20|t*20|t*21m|mL' --batch 4; echo "status $?"
orrery stage -q deepseek-v3 --pp 4 --layout 'Et*20|t*20|t*21|mL' --batch 4; echo "status $?"
orrery stage -q deepseek-v3 --pp 63 --mtp --batch 63; echo "status $?"
