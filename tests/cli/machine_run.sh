# SPDX-License-Identifier: Apache-2.0
# run --machine: nodes as the traces need them, the same times as with the files that export writes; files override.
orrery -q stage llama-3-8b --layers 2 --tp 8 --dp 4 --seq 1024 --batch 4 -o step.orr >sizes
time_of() {
    orrery -q run step.orr "$@" --json | grep -o '"simulated_ns": [0-9]*'
}
orrery -q machine export dgx-h100:4 -o files
ls files
for network in unaware aware; do
    time_of --machine dgx-h100 --ideal --network $network >a
    time_of -s files/system.json -t files/network.yml -m files/memory.json --ideal --network $network >b
    time_of --machine files/machine.yml --ideal --network $network >c
    cmp a b && cmp a c && echo "$network: the same"
done
time_of --machine dgx-h100:128 --ideal --network aware | cmp - a && echo "idle nodes: the same" # idle nodes, and one leaf as before
time_of --machine dgx-h100 --network aware -t files/links.yml >c
[ -s c ] && echo "links: ran"
time_of --machine dgx-h100 --network aware >measured
[ "$(cut -d: -f2 measured)" -gt "$(cut -d: -f2 a)" ] && echo "measured kernels: slower than ideal"
time_of --machine dgx-h100 --hardware h100 --network aware | cmp - measured && echo "the chip is h100"
orrery run step.orr --machine dgx-h100:3
echo "status $?"
orrery -q gen all_reduce --ranks 12 -o odd.orr
orrery run odd.orr --machine dgx-h100
echo "status $?"
orrery -q gen all_reduce --ranks 4 -o few.orr
orrery -q run few.orr --machine dgx-h100 --network unaware | grep '^0:'
orrery -q gen all_reduce --ranks 64 -o cube.orr
orrery -q run cube.orr --machine tpu-v4 --network unaware | grep '^[0-9]:' | cut -c 1-12
orrery run step.orr
echo "status $?"
