# SPDX-License-Identifier: Apache-2.0
# A list that ends in a comma never ended; a path of more than 255 bytes was cut.
ulimit -t 60
orrery -q stage gpt2 --dp 2 --layers 1 --batch 4 -o step.orr >/dev/null
t() { orrery -q report step.orr "$@" -o r.html 2>&1; echo "status $?"; }
t --machine dgx-h100,
t --machine ,dgx-h100
t --machine dgx-h100 --network fluid,
t --machine dgx-h100 --network ,
t --machine dgx-h100,dgx-a100 --names A,
grep -o '"name":"\(A\|step[^"]*\)"' r.html | sort -u
long=$(printf '%0150d/%0150d' 0 0)
t --machine "$long/none.yaml" | sed 's|.*000/none|...000/none|; s|: --machine.*||'
