# SPDX-License-Identifier: Apache-2.0
# What is refused: status, one message with its place, and nothing on standard output.
refuse() {
    want=$1
    shift
    orrery chip "$@" 2>&1 >out
    status=$?
    [ "$status" = "$want" ] || echo "$*: status $status"
    [ ! -s out ] || echo "$*: something was printed"
}
refuse 2 time
refuse 2 time h2000 launch
refuse 2 time h200
refuse 2 list h200
refuse 2 show h200 launch
refuse 3 time h200 launch 'gemm bf16 m=1 n=2'
refuse 3 time h200 'launch;gemm bf16 m=1 n=2 k=x'
refuse 3 time a100 'gemm nvfp4 m=1 n=2 k=64'
printf 'launch\nlaunch;norm bf16 m=1 n=2 tall\n' >kernels.txt
refuse 3 time h200 --from kernels.txt
refuse 3 time h200 --from kernels.txt --json
refuse 4 time h200 --from missing.txt
printf '# none yet\n\n' >kernels.txt
refuse 3 time h200 --from kernels.txt
refuse 3 time h200 --from kernels.txt --json
refuse 3 time h200 launch --from /dev/null
