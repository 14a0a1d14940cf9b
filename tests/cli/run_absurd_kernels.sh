# SPDX-License-Identifier: Apache-2.0
# A kernel that takes more than 2^64 ns is an error, not a step of microseconds.
orrery stage -q gpt2 --layers 1 --seq 128 --software cuda-graph -o step.orr >/dev/null
orrery view -q json step.orr -o step.json
for kernel in 'gemm bf16 m=1099511627776 n=1099511627776 k=1099511627776' 'elementwise bf16 write=1000000000000000 ops=1099511627776'; do
    sed "s/\"norm bf16 [^;\"]*/\"$kernel/" step.json >absurd.json
    orrery run absurd.json --hardware h200
    echo "status $?"
done
