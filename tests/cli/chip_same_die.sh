# SPDX-License-Identifier: Apache-2.0
# An H100 and an H200 are the same die: attention in training takes as long on both where memory does not count, by our
# rows of cuDNN's kernels.  Paged attention takes the public rows, of the kernels of serving software, which take longer.
rate() {
    orrery chip time "$1" "attention bf16 batch=2 heads=32 kv_heads=8 head=128 q=$2 kv=$2 causal $3" | awk '/TFLOP/ { print $1 }'
}
for way in '' backward paged; do
    for tokens in 2048 8192; do
        awk -v a="$(rate h100 $tokens "$way")" -v b="$(rate h200 $tokens "$way")" -v what="${way:-forward}, $tokens tokens" \
            'BEGIN { r = b ? a / b : 0; print what ": " (r > 0.95 && r < 1.05 ? "as the H200" : "ratio " r) }'
    done
done
awk -v a="$(rate h100 4096 '')" -v b="$(rate h100 4096 paged)" 'BEGIN { print (a > 1.05 * b ? "cuDNN is faster" : a " " b) }'
# The longest sequences are outside the measured range; what is not measured at all is of another chip.
for kernel in 'attention bf16 heads=32 head=128 q=8192 kv=8192 causal' 'attention bf16 heads=32 head=128 q=524288 kv=524288 causal' \
    'norm bf16 m=8192 n=4096'; do
    orrery chip time h100 "$kernel" | sed -n 's/.*), //p'
done
