# SPDX-License-Identifier: Apache-2.0
# Ctrl-C in a run of flows: what is known so far is printed, the page says that it was interrupted, no file of flows appears.
{
    printf '9 1 8\n8\n'
    for host in 0 1 2 3 4 5 6 7; do echo "8 $host 100Gbps 1us 0"; done
} >topology.txt
{
    echo 8
    for host in 0 1 2 3 4 5 6 7; do echo "$host $(((host + 1) % 8)) 3 100 900000000000 0"; done
} >flows.txt
env --default-signal=INT orrery -q run --flows=flows.txt -t topology.txt --report page.html >out.txt 2>err.txt &
. "$ORR_ROOT/tests/cli/interrupt.inc"
interrupt $!
wait $!
echo "status $?"
grep -c '^flows done  *0 of 8$' out.txt
grep -c '^links, 16 used' out.txt
grep -c 'interrupted at .* 0 of 8 flows were done' err.txt
grep -c 'The run was interrupted; results are those up to that point' page.html
[ ! -e fct.txt ] && echo "no fct.txt"
