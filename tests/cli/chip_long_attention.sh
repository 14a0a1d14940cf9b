# SPDX-License-Identifier: Apache-2.0
# Public rows of attention with heads of 128 end at 16,384 tokens, and those without a mask have heads of 72 and 80, which kernels pad:
# longer sequences are no slower for as many operations, and an H100 is as fast as the H200, which has the same die.
rate() {
    orrery chip time "$1" "attention bf16 batch=1 heads=32 kv_heads=32 head=128 head_v=128 q=$2 kv=$2 ${3-}" | awk '/TFLOP/ { print $1 }'
}
for mask in causal ''; do
    for chip in h100 b200 a100; do
        awk -v a="$(rate $chip 16384 $mask)" -v b="$(rate $chip 65536 $mask)" -v chip="$chip${mask:+, $mask}" \
            'BEGIN { print chip ": " (a > 0 && b >= 0.95 * a ? "no slower" : a " " b) }'
    done
    awk -v a="$(rate h100 65536 $mask)" -v b="$(rate h200 65536 $mask)" \
        'BEGIN { r = b ? a / b : 0; print (r > 0.95 && r < 1.05 ? "as the H200" : "ratio " r) }'
done
