# SPDX-License-Identifier: Apache-2.0
# room: nsight, nccl_generator
# Algorithms of one's own in schedules made of Nsight exports: collectives that a plan of MSCCL or MSCCL++ fits are written by
# it, and every message has its other end.  A ring all-reduce of 4 ranks has 4 x 6 messages, of all pairs 4 x 3.
make() {
    PYTHONDONTWRITEBYTECODE=1 python3 "$ORR_ROOT/tests/golden/plan_inputs.py" "$@"
}
"$ORR_BUILD/tests/unit/make_nsys" traces rounds=4 table=t.json
make ring_all_reduce 4 >ring.xml
make pairs_all_reduce 4 >pairs.xml
make ring_all_gather 4 >gather.xml
make read_all_reduce 4 >read.json
make ring_all_reduce 8 >ring8.xml
orrery nccl traces -s t.json -o own.goal | tail -n 1
for plan in ring.xml pairs.xml read.json pairs.xml,gather.xml ring8.xml; do
    echo "-- $plan"
    orrery nccl traces -s t.json --plan $plan -o plan.goal 2>&1 | tail -n 2
    orrery check plan.goal
    orrery run -q plan.goal -n loggops --json | grep -o '"finished_ns": [0-9]*' | head -n 1
done
orrery nccl traces --plan ring.xml -q --json | grep -o '"planned": [0-9]*'
orrery nccl traces -s t.json --plan ring.xml --compat -o never.goal
echo "exit $?"
orrery nccl traces --plan none.xml -o never.goal
echo "exit $?"
sed 's/send="0"/send="1"/' ring.xml >broken.xml
orrery nccl traces --plan broken.xml -o never.goal
echo "exit $?"
ls never.goal
