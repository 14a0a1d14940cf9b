# SPDX-License-Identifier: Apache-2.0
# A job goes at the pace of its slowest chip: the more chips under the power cap, the slower; a chip file turns it off; alone and below the cap nothing changes.
for part in 0 0.05 0.1 0.6 -0.1 much; do
    printf 'like: h100\npower_spread: %s\n' $part >$part.yml
done
for n in 1 8 64; do
    orrery stage -q llama-3-8b --layers 4 --seq 4096 --batch $n --dp $n -o dp$n.orr >made.txt
    for chip in h100 0.yml 0.05.yml 0.1.yml; do
        orrery run -q dp$n.orr --hardware $chip --json >dp$n.$chip.json
    done
done
orrery stage -q gpt2 --layers 2 --seq 64 --batch 64 --dp 64 --software cuda-graph -o small.orr >made.txt
for chip in h100 0.yml; do
    orrery run -q small.orr --hardware $chip --json >small.$chip.json
done
python3 - <<'PY'
import json
def compute(name, chip):
    return json.load(open(f"{name}.{chip}.json"))["over_ranks"]["compute_ns"]["mean"]
def longer(name, chip):
    return compute(name, chip) / compute(name, "0.yml") - 1
few, many = longer("dp8", "h100"), longer("dp64", "h100")
print("one chip waits for nobody" if longer("dp1", "h100") == 0 else longer("dp1", "h100"))
print("8 and 64 chips, longer by 1.42 and 2.34 parts" if 0.003 < few < 0.02 and abs(many / few / (2.344 / 1.4236) - 1) < 0.05 else (few, many))
print("5 % is what a chip has" if longer("dp64", "0.05.yml") == many else longer("dp64", "0.05.yml"))
print("twice as far apart, twice as much" if abs(longer("dp64", "0.1.yml") / many - 2) < 0.01 else longer("dp64", "0.1.yml"))
print("below the cap all have the same clock" if longer("small", "h100") == 0 else longer("small", "h100"))
PY
for part in 0 0.1; do
    orrery chip show $part.yml | grep spread
    orrery chip show $part.yml --json | grep -o '"power_spread": [0-9.]*'
done
for part in -0.1 0.6 much; do
    orrery run dp1.orr --hardware ./$part.yml 2>&1
    echo "status $?"
done
