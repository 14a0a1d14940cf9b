# SPDX-License-Identifier: Apache-2.0
# A measured run and a simulated one, as trace events: figures added up by hand.  Operator b has a launch inside, which only the
# measured run knows: 20 us of its own, not 15.
cat >measured.json <<'END'
{"traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 5, "tid": 5, "ts": 0, "dur": 30, "args": {"External id": 1}},
 {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 5, "tid": 5, "ts": 40, "dur": 20, "args": {"External id": 2}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 45, "dur": 5, "args": {"correlation": 9}},
 {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 60, "dur": 40, "args": {"stream": 7, "correlation": 9}}]}
END
cat >simulated.csv <<'END'
issue,sys->id=0, tick=0, node->id=1, node->name=a
callback,sys->id=0, tick=30000, node->id=1, node->name=a
issue,sys->id=0, tick=30000, node->id=2, node->name=b
callback,sys->id=0, tick=55000, node->id=2, node->name=b
issue,sys->id=0, tick=55000, node->id=3, node->name=gemm
callback,sys->id=0, tick=85000, node->id=3, node->name=gemm
END
orrery diff measured.json simulated.csv -n 2
orrery diff measured.json simulated.csv --within 20 >/dev/null
echo "within 20: $?"
orrery diff measured.json simulated.csv --within 10 --json | grep -A3 whole_ps
orrery diff measured.json simulated.csv --within 10 >/dev/null
echo "within 10: $?"
echo nonsense >bad.json
orrery diff measured.json bad.json
echo "bad: $?"
orrery diff measured.json nowhere.json
echo "nowhere: $?"
orrery -q gen all_reduce --ranks 2 -o traces.orr
orrery diff measured.json traces.orr
echo "traces: $?"
