# SPDX-License-Identifier: Apache-2.0
# A chip from a trace of PyTorch's profiler: products by their strides, attention, norms and activations; medians of equal
# calls; what is no trace is refused.
cat >trace.json <<'END'
{"traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 9, "args": {"External id": 1, "Input Dims": [[4096, 1024], [1024, 3072]],
  "Input Strides": [[1024, 1], [1, 1024]], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Concrete Inputs": ["", ""]}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 2, "dur": 9, "args": {"External id": 2, "Input Dims": [[3072, 4096], [4096, 1024]],
  "Input Strides": [[1, 3072], [1024, 1]], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Concrete Inputs": ["", ""]}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "ts": 3, "dur": 9, "args": {"External id": 3, "Input Dims": [[1024], [4096, 3072], [3072, 1024], [], []],
  "Input Strides": [[1], [3072, 1], [1, 3072], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"]}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::_cudnn_attention_forward", "ts": 4, "dur": 9, "args": {"External id": 4,
  "Input Dims": [[2, 16, 2048, 64], [2, 4, 2048, 64], [2, 4, 2048, 64]], "Input Strides": [[2097152, 64, 1024, 1], [524288, 64, 256, 1], [524288, 64, 256, 1]],
  "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"],
  "Concrete Inputs": ["", "", "", "", "", "", "2048", "2048", "True", "0.", "True", "False", ""]}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::_fused_rms_norm", "ts": 5, "dur": 9, "args": {"External id": 5, "Input Dims": [[2, 2048, 1024], [], [1024]],
  "Input Strides": [[2097152, 1024, 1], [], [1]], "Input type": ["c10::BFloat16", "ScalarList", "c10::BFloat16"]}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::silu", "ts": 6, "dur": 9, "args": {"External id": 6, "Input Dims": [[2, 2048, 4096]],
  "Input Strides": [[16777216, 8192, 1]], "Input type": ["c10::BFloat16"]}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::_fused_rms_norm", "ts": 7, "dur": 9, "args": {"External id": 7, "Input Dims": [[2, 2048, 1024], [], [1024]],
  "Input Strides": [[2097152, 1024, 1], [], [1]], "Input type": ["c10::BFloat16", "ScalarList", "c10::BFloat16"]}},
 {"ph": "X", "cat": "kernel", "name": "a", "ts": 10, "dur": 41.0, "args": {"External id": 1}},
 {"ph": "X", "cat": "kernel", "name": "b", "ts": 60, "dur": 30.0, "args": {"External id": 2}},
 {"ph": "X", "cat": "kernel", "name": "c", "ts": 90, "dur": 12.5, "args": {"External id": 2}},
 {"ph": "X", "cat": "kernel", "name": "d", "ts": 120, "dur": 43.0, "args": {"External id": 3}},
 {"ph": "X", "cat": "kernel", "name": "e", "ts": 170, "dur": 61.0, "args": {"External id": 4}},
 {"ph": "X", "cat": "kernel", "name": "f", "ts": 240, "dur": 6.0, "args": {"External id": 5}},
 {"ph": "X", "cat": "kernel", "name": "g", "ts": 250, "dur": 28.0, "args": {"External id": 6}},
 {"ph": "X", "cat": "kernel", "name": "f", "ts": 290, "dur": 7.0, "args": {"External id": 7}}
]}
END
measure="python3 $ORR_ROOT/capture/orrery_measure.py"
$measure --kineto trace.json -o measured.csv
cat measured.csv
orrery -q calibrate kernels measured.csv --like h200 -o mine.yml | grep -E "rows|gemm" | sed 's/mean.*//'
orrery -q chip time mine.yml 'gemm bf16 m=4096 n=3072 k=1024' | grep -c calibrated
echo '{"traceEvents": []}' >empty.json
$measure --kineto empty.json -o none.csv 2>&1
echo "status $?"
echo 'no trace' >text.json
$measure --kineto text.json -o none.csv 2>&1 | cut -c1-50
ls none.csv 2>&1 | sed 's/.*none/none/'
