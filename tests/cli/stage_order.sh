# SPDX-License-Identifier: Apache-2.0
# A pipeline schedule from a file: an order that 1F1B would take gives the same step, byte for byte but for its name;
# one that cannot be is refused where it stands.
printf '# 1F1B\n0: F0 F1 B0 F2 B1 B2\n1: F0 B0 F1 B1 F2 B2\n' >plain.txt
orrery stage -q gpt2 --pp 2 --batch 3 --order plain.txt -o own.orr >own.txt
orrery stage -q gpt2 --pp 2 --batch 3 -o known.orr >known.txt
sed 's/bf16, own/bf16, 1f1b/' own.txt | diff - known.txt
for file in own known; do orrery view json $file.orr --rank 1 | sed 's/pipeline=6 //' >$file.json; done
cmp own.json known.json && echo same
printf 'placement: v\n0: F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0\n1: F0.0 F0.1 F1.0 F1.1 B0.1 B0.0 B1.1 W1.1 B1.0\n' >v.txt
orrery stage -q gpt2 --pp 2 --batch 2 --order v.txt --memory held.csv -o v.orr >/dev/null
orrery check -q v.orr && orrery run -q v.orr --machine dgx-h100 >/dev/null && cut -d, -f1-4 held.csv
t() { printf "$1" >bad.txt; shift; orrery stage -q gpt2 --pp 2 --batch 2 --order bad.txt "$@" -o bad.orr; echo "status $?"; }
t '0: F0 F1 B0 B1\n'
t '0: F0 F1 B0 B1\n1: F0 X1 B0 B1\n'
t '0: F0 F1 B0 B1\n1: F0 F1 B0 B2\n'
t '0: F0 F1 B0 B1\n1: F0 F0 B0 B1\n'
t '0: F0 F1 B0 B1\n1: B0 F0 F1 B1\n'
t '0: F0 F1 B0 B1\n1: F0 F1 B0\n'
t '0: F0 F1 B0 B1\n1: F0 F1.1 B0 B1\n'
t '0: F0 F1 B0 B1\n2: F0 F1 B0 B1\n'
t '0: F0 F1 B0 B1\n1: F0 F1 B0 B1 W7777777777777777777777\n'
t '0: F0 F1 W0 B0 B1\n1: F0 F1 B0 B1\n'
t '0: F1 B1 F0 B0\n1: F0 B0 F1 B1\n'
t 'placement: u\n0: F0 F1 B0 B1\n1: F0 F1 B0 B1\n'
t 'placement: v v\n0: F0 F1 B0 B1\n1: F0 F1 B0 B1\n'
t '0: F0 F1 B0 B1\n1: F0 F1 B0 B1\n' --pipeline gpipe
orrery stage -q gpt2 --pp 2 --batch 3 --pipeline zb-v; echo "status $?"
orrery stage -q gpt2 --pp 2 --batch 4 --pipeline zb-v --chunks 4; echo "status $?"
orrery stage -q gpt2 --pp 2 --batch 2 --order missing.txt; echo "status $?"
ls bad.orr 2>/dev/null
true
