# SPDX-License-Identifier: Apache-2.0
# Kernels on chips: text, JSON, a file, a chip without measurements.
orrery chip time h200 'gemm bf16 m=8192 n=8192 k=8192' 'norm bf16 m=8192 n=4096 rms;launch'
printf '# a comment\n\nattention bf16 batch=4 heads=32 kv_heads=8 head=128 q=4096 causal\n' >kernels.txt
orrery chip time a100 --from kernels.txt --json
orrery chip time mi300x 'elementwise bf16 read=4000000000 write=2000000000'
orrery chip show v100
orrery chip list | head -4
orrery chip show b200 --json
