# SPDX-License-Identifier: Apache-2.0
# Numbers of devices: the fastest, the cheapest and the leanest are not the same one.
set -e
for goal in time cost memory; do
    orrery plan gpt2 --machine dgx-h100 --devices 2,4,8 --batch 16 --seq 1024 --fix cp=1,recompute=none --goal $goal --top 1 -q > out
    sed -n '/^  devices/,/^\*/p' out
    # Its plans are those that are printed first.
    chosen=$(sed -n 's/^ *\([0-9]*\)\* .*/\1/p' out)
    grep -c "^gpt2 on $chosen devices" out
done
# The price of a device changes no order, but the figures.
orrery plan gpt2 --machine dgx-h100 --devices 2,4 --batch 16 --seq 1024 --fix cp=1,recompute=none,pp=1 --goal cost --price 2 --top 1 -q --json |
    python3 -c 'import json, sys; print([(s["devices"], s["is_best"], s["usd_per_mtoken"] > 0) for s in json.load(sys.stdin)["sizes"]])'
