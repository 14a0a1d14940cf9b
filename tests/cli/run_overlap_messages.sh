# SPDX-License-Identifier: Apache-2.0
# Send and receive hold channels: message_overlap_cost of the machine.  What compute takes longer is that share of the time in which
# messages of its rank move beside it; folded or not.
orrery stage -q gpt2 --pp 2 --batch 8 --micro-batch 1 -o pipeline.orr > /dev/null
orrery stage -q gpt2 --pp 2 --dp 8 --batch 64 --micro-batch 1 -o replicas.orr > /dev/null
orrery machine show dgx-h100 --file | sed 's/^overlap_cost.*/overlap_cost: 0/; s/^message_overlap_cost.*/message_overlap_cost: 0/' > without.yml
sed 's/^message_overlap_cost.*/message_overlap_cost: 0.5/' without.yml > half.yml
grep -q 'message_overlap_cost: 0.5' half.yml || echo 'message_overlap_cost: 0.5' >> half.yml
for machine in without half; do
    orrery run -q pipeline.orr --machine $machine.yml --json > $machine.json
done
orrery run -q replicas.orr --machine half.yml --json > folded.json
orrery run -q replicas.orr --machine half.yml --fold off --json > every.json
orrery run -q pipeline.orr --machine half.yml --ideal --json > ideal.json
orrery run -q pipeline.orr --machine without.yml --ideal --json > ideal_without.json
python3 - <<'PY'
import json
def figures(name):
    r = json.load(open(name + ".json"))
    return [(p["compute_ns"], p["communication_ns"] - p["exposed_communication_ns"]) for p in r["per_rank"]], r["simulated_ns"]
(without, plain), (half, slower) = figures("without"), figures("half")
# Sends and receives beside one another take twice, so a rank loses between one and two shares of the time that is beside compute.
low = all(a[0] - b[0] >= 0.5 * a[1] * 0.999 - 1 for a, b in zip(half, without))
high = all(a[0] - b[0] <= 2 * 0.5 * a[1] * 1.001 + 1 for a, b in zip(half, without))
print("compute loses", "a share per message" if low and high else f"otherwise: {[(a, b) for a, b in zip(half, without)][:4]}")
print("some of it", "is lost" if sum(a[0] for a in half) > sum(a[0] for a in without) else "is not lost", "and the step", "is longer" if slower > plain else "is not")
print("folded", "the same" if figures("folded") == figures("every") else "differs")
print("--ideal", "without it" if figures("ideal") == figures("ideal_without") else "has it")
PY
orrery machine show dgx-h100 | grep collectives
sed 's/^message_overlap_cost.*/message_overlap_cost: 1/' half.yml > bad.yml
orrery machine check bad.yml 2>&1
echo "status $?"
