# SPDX-License-Identifier: Apache-2.0
# Damaged trees and traffic of htsim: one message each, with its place, and nothing is written.
orrery -q gen topology switch --hosts 8 --nic 100Gbps --latency 1us -o good.txt
printf 'Nodes 2\nConnections 1\n0->1 start 0 size 1000\n' >good.cm
run() {
    orrery run --flows "$1" -t "$2" 2>&1
    [ $? = 3 ] || echo "$1 on $2: status is not 3"
    [ ! -e fct.txt ] || echo "$1 on $2: fct.txt was written"
}
for file in "$ORR_ROOT"/tests/broken/htsim_topo/*; do
    cp "$file" .
    run good.cm "${file##*/}"
    orrery -q gen topology --from "${file##*/}" -o out.txt 2>/dev/null && echo "${file##*/} was converted"
    [ ! -e out.txt ] || echo "${file##*/}: out.txt was written"
done
for file in "$ORR_ROOT"/tests/broken/htsim_cm/*; do
    cp "$file" .
    run "${file##*/}" good.txt
done
# what never starts is told, and is an error, too
printf 'Nodes 2\nConnections 2\nTriggers 1\n0->1 start 0 size 1000\n1->0 trigger 3 size 1\ntrigger id 3 multishot\n' >never.cm
run never.cm good.txt
