# SPDX-License-Identifier: Apache-2.0
# Context parallelism in stretches: the first block of a rank is masked, the others are whole, as the last rank has them.
step="llama-3-8b --layers 2 --cp 4 --seq 65536 --batch 1 --software megatron-core"
for form in ring contiguous; do
    orrery -q stage $step --context $form -o $form.orr >/dev/null
    orrery -q view json $form.orr --rank 0 | tr -d ' \n' | grep -o 'attentionbf16[^"]*' | sort | uniq -c | sed 's/^ *//'
    orrery -q run $form.orr --machine dgx-h100 --json | grep -o '"simulated_ns": [0-9]*' | cut -d' ' -f2 >$form.ns
done
awk "BEGIN {r = $(cat contiguous.ns) / $(cat ring.ns); print (r > 1.25 && r < 1.75 ? \"nearly twice the attention\" : r)}"
orrery stage llama-3-8b --cp 4 --context round -o bad.orr 2>&1
echo "status $?"
