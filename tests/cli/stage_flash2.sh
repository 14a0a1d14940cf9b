# SPDX-License-Identifier: Apache-2.0
# FlashAttention 2 on an H100 takes 1.82 and backward 1.80 times as long as cuDNN's kernels at the same clock
# (truth/measure/flash2.csv). Attention is what grows with the square of a sequence: twice the tokens take twice as long without it.
time_of() {
    orrery stage -q llama-2-7b --layers 1 --seq "$2" --software "$1" -o f.orr >/dev/null
    orrery run f.orr --hardware h100 --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p'
}
attention_of() {
    echo $(($(time_of "$1" 65536) - 2 * $(time_of "$1" 32768)))
}
awk -v a="$(attention_of megatron-core-2024)" -v b="$(attention_of megatron-core-2024-flash2)" \
    'BEGIN { r = a ? b / a : 0; print (r > 1.7 && r < 1.9 ? "the slower attention shows" : "ratio " r) }'
