# SPDX-License-Identifier: Apache-2.0
# What would have no effect is refused.
try() {
    orrery "$@" >out 2>&1
    printf '%s: %s\n' $? "$(head -n 1 out)"
}
orrery stage -q gpt2 --layers 1 --seq 64 --dp 2 -o step.orr >/dev/null
try run -q step.orr --machine dgx-h100 --ideal --hardware h200
try run -q step.orr --machine dgx-h100 --logical none.json
try stage gpt2 --recompute-layers 4
try stage gpt2 --recompute selective --recompute-layers 4
try stage gpt2 --fp8-attention
try stage gpt2 -q --recompute full --recompute-layers 4
try stage gpt2 -q --dtype fp8 --fp8-attention
