# SPDX-License-Identifier: Apache-2.0
# Wrong options and files that are none: one message each, and no output.
make=$ORR_BUILD/tests/unit/make_nsys
try() {
    "$@"
    echo "status $?"
}
$make traces rounds=2 table=t.json
mkdir empty
try orrery nccl
try orrery nccl traces --compat --tag-bits 32 -o x.goal
try orrery nccl traces --id-width 9 --context-width 10
try orrery nccl traces --memory lots
try orrery nccl empty -o x.goal
try orrery nccl nowhere -o x.goal
try orrery nccl traces/trace_nid000000.sqlite -o x.goal
try orrery nccl traces -s nowhere.json -o x.goal
echo '{"NPKIT_EVENT_GPU_RECV_REDUCE_SEND": {"8": []}}' > bad.json
try orrery nccl traces -s bad.json -o x.goal
try nccl_goal_generator -i traces -o out -s t.json
try nccl_goal_generator -i traces -o out -s t.json -l t.json --write_buffer_size 1XB
try nccl_goal_generator -i traces -o out -s t.json -l t.json --write_buffer_size 1MB -p -c -w 3 --intermediate_goal
ls out
rm -r out
try nccl_goal_generator -i traces -o a/b/out -s t.json -l t.json -p
ls a/b/out
[ ! -e x.goal ] && echo "nothing was written"
