# SPDX-License-Identifier: Apache-2.0
# All links of a mesh carry a collective at the same time: where the host is the limit, faster links do not make a step
# longer.
orrery -q stage qwen2.5-7b --layers 16 --tp 4 --pp 8 --cp 4 --batch 16 --seq 4096 --software torch-compile --no-overlap -o t.orr > /dev/null
step() { orrery -q run t.orr --machine "$1" --json | sed -n 's/.*"simulated_ns": *\([0-9]*\).*/\1/p' | head -1; }
last=999999999999
for rate in 448 896 1792; do
    now=$(step mi300x:16,scale_up.bandwidth=${rate}GB/s)
    awk -v now="$now" -v last="$last" -v rate=$rate 'BEGIN {
        print (now > 0 && now <= last ? "not longer" : rate " GB/s: " now " ns, with half of it " last) }'
    last=$now
done
