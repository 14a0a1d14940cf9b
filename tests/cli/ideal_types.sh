# SPDX-License-Identifier: Apache-2.0
# At peak rates narrow products are as many times faster as the data sheet says, in serve by machine, chip or neither,
# and in run; measured kernels are never faster than that.
set -e
for dtype in bf16 fp8; do
    printf '%s:' $dtype
    for where in "" "--machine dgx-h100:1" "--hardware h100" "--hardware b200"; do
        orrery serve -q llama-3-8b --dtype $dtype --ideal $where -b 8 -p 4096 --phase prefill --json |
            sed -n 's/.*"peak_operations_per_s": \([0-9]*\)[0-9]\{12\},.*/ \1/p' | tr -d '\n'
    done
    orrery serve -q llama-3-8b --dtype $dtype --ideal --machine dgx-h100:1 -b 8 -p 4096 --phase prefill -o s.orr | sed -n 's/.*losses: \(.*\) in total.*/; serve \1/p' | tr -d '\n'
    orrery run -q s.orr --machine dgx-h100:1 --ideal | sed -n '1s/.*after \(.*\) (.*/, run \1/p'
done
for dtype in bf16 fp8 nvfp4; do
    orrery stage -q llama-3-8b --layers 4 --dtype $dtype --dp 8 --batch 16 -o step.orr >/dev/null
    for how in --ideal ""; do
        orrery run -q step.orr --machine dgx-b200 $how --json >run.json
        sed -n 's/^    "step_ns": \([0-9]*\),/\1/p' run.json
        sed -n 's/^    "peak_tflops": \(.*\),/\1/p' run.json
    done | tr '\n' ' ' | awk -v dtype=$dtype '{print dtype, "peak", $2, $4 == $2 ? "in both" : "and " $4, $1 < $3 ? "a bound" : "no bound"}'
done
