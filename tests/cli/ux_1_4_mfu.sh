# SPDX-License-Identifier: Apache-2.0
# Step time, tokens/s, TFLOP/s per device and the MFU with the peak it is of, for people and for programs, the same numbers
# as in the report.
orrery -q stage llama-3-8b --layers 4 --tp 2 --dp 4 --seq 2048 --batch 8 --steps 2 -o step.orr >sizes
orrery -q run step.orr --machine dgx-h100 --report r.html --what-if off >text
orrery -q run step.orr --machine dgx-h100 --json >json
value() {
    grep -o "\"$1\": [0-9.]*" json | cut -d' ' -f2
}
sed -n 2,3p text | sed 's/[0-9][0-9.,]*/N/g'
sed -n '/"throughput"/,/}/p' json | sed 's/[0-9][0-9.]*\([,]\)/N\1/'
ns=$(value simulated_ns)
[ "$(value step_ns)" -ge $((ns / 2)) ] && [ "$(value step_ns)" -le $((ns / 2 + 1)) ] && echo "two steps"
grep -q "$(printf '%.1f' "$(value tflops_per_device)" | sed 's,\.0$,,')" text && echo "text and JSON: the same TFLOP/s"
grep -q "MFU $(value mfu | awk '{printf "%.1f", 100 * $1}') %" text && echo "text and JSON: the same MFU"
[ "$(grep -o '"mfu":[0-9.]\{8\}' r.html)" = "\"mfu\":$(value mfu | cut -c 1-8)" ] && echo "report: the same MFU"
orrery -q run step.orr --machine dgx-h100 --ideal | sed -n 3p | grep -o 'of 989.*'
orrery -q gen all_reduce --ranks 8 -o ar.orr
orrery -q run ar.orr --machine dgx-h100 --json | sed -n '/"throughput"/,/}/p'
orrery -q run ar.orr --machine dgx-h100 | grep tokens
