# SPDX-License-Identifier: Apache-2.0
# The sentence of a report names collectives with "most of it" only if that is so: here 100 of 1,000 us are an
# all-reduce, 900 us are sends and receives; then the other way round.
timeline() { # us of the all-reduce
    printf '{"traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0, "dur": 200, "args": {"device": 0, "stream": 7}},
 {"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8", "pid": 0, "tid": 9, "ts": 200, "dur": %d, "args": {"device": 0, "stream": 9}},
 {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float", "pid": 0, "tid": 9, "ts": %d, "dur": %d, "args": {"device": 0, "stream": 9}}],
 "deviceProperties": [{"id": 0}], "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8}}' \
        $((1000 - $1)) $((1200 - $1)) "$1"
}
for us in 100 900; do
    timeline $us >t.json
    orrery report -q t.json -o t.html
    grep -o '"sentence":"[^"]*"' t.html
done
