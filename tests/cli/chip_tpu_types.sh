# SPDX-License-Identifier: Apache-2.0
# TPUs have products in the types that Google and JAX list: fp8 from v6e on, there at the rate of bf16, twice as fast on v7;
# int8 from v4 to v6e.  fp8 once was as fast as int8 on all of them.
for chip in tpu-v3 tpu-v4 tpu-v5e tpu-v5p tpu-v6e tpu-v7; do
    for type in fp8 int8; do
        rate() { orrery chip time -q $chip "gemm $1 m=16384 n=16384 k=16384" --json 2>/dev/null | sed -n 's/.*"us": \([0-9.]*\)}$/\1/p'; }
        echo "$chip $type: $(awk -v bf16=$(rate bf16) -v this=$(rate $type) 'BEGIN { if (this > 0) printf "%.1f times bf16\n", bf16 / this; else print "none" }')"
    done
done
orrery serve -q llama-3-8b --dtype fp8 --machine tpu-v5p -n 2
echo "status $?"
