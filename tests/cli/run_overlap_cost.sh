# SPDX-License-Identifier: Apache-2.0
# Channels of a collective take multiprocessors and memory bandwidth from compute: overlap_cost of the machine.  What compute takes
# longer is that share of the time in which collectives go on beside it; folded or not.
orrery stage -q llama-3-8b --dp 16 --batch 32 --seq 4096 --zero 1 -o dp.orr >stage.txt
orrery machine show dgx-h100 --file | sed 's/^overlap_cost.*/overlap_cost: 0/' >without.yml
orrery machine show dgx-h100 --file | sed 's/^overlap_cost.*/overlap_cost: 0.5/' >half.yml
for machine in dgx-h100 without.yml half.yml; do
    orrery run -q dp.orr --machine $machine --json >$machine.json
done
orrery run -q dp.orr --machine dgx-h100 --ideal --json >ideal.json
orrery run -q dp.orr --machine without.yml --ideal --json >ideal_without.json
orrery run -q dp.orr --machine dgx-h100 --fold off --json >whole.json
python3 - <<'PY'
import json
def figures(name):
    r = json.load(open(name + ".json"))
    mean = {k: r["over_ranks"][k]["mean"] for k in ("compute_ns", "communication_ns", "exposed_communication_ns")}
    return r["simulated_ns"], mean["compute_ns"], mean["communication_ns"] - mean["exposed_communication_ns"]
without = figures("without.yml")
for name, cost in (("dgx-h100", 0.12), ("half.yml", 0.5)):
    _, compute, beside = figures(name)
    longer, due = compute - without[1], cost * beside
    print(name, "as stated" if abs(longer / due - 1) < 1e-4 else f"{longer} ns longer, {due} due")
print("folded", "the same" if figures("whole") == figures("dgx-h100") else "differs")
print("--ideal", "without it" if figures("ideal") == figures("ideal_without") else "has it")
PY
orrery run -q dp.orr --machine dgx-h100 | grep compute:
sed 's/^overlap_cost.*/overlap_cost: 1/' half.yml >bad.yml
orrery machine check bad.yml 2>&1
echo "status $?"
# An estimate says so, with its interval; a value with a source does not, nor does one that a file states itself.
for machine in dgx-b200 dgx-h100; do
    orrery machine show $machine | grep collectives
done
orrery machine show dgx-b200 --file >b200.yml
orrery machine show b200.yml | grep collectives
printf 'base: dgx-b200\nname: own\noverlap_cost: 0.5\n' >own.yml
orrery machine show own.yml | grep collectives
sed 's/^overlap_cost_most.*/overlap_cost_most: 0.1/' b200.yml >bad.yml
orrery machine check bad.yml 2>&1
echo "status $?"
