# SPDX-License-Identifier: Apache-2.0
# A chip from measured kernels: twice as slow norms give norms twice as slow, and steps that say so; broken rows are refused.
orrery -q chip time h200 'norm bf16 m=16384 n=4096 rms' --json | grep -o '"us": [0-9.]*' | head -1 | cut -d' ' -f2 >us
{
    echo "# orrery-measured 1: a GPU"
    echo "kernel,us,host_us"
    for m in 1024 2048 4096 8192 16384; do
        for n in 1024 4096; do
            now=$(orrery -q chip time h200 "norm bf16 m=$m n=$n rms" --json | grep -o '"us": [0-9.]*' | head -1 | cut -d' ' -f2)
            echo "norm bf16 m=$m n=$n rms,$(awk "BEGIN {printf \"%.3f\", 2 * $now}"),3.1"
        done
    done
} >measured.csv
orrery -q calibrate kernels measured.csv --like h200 -o mine.yml
orrery -q calibrate kernels measured.csv --like h200 --json | grep -o '"kind.*'
cat mine.yml
twice=$(orrery -q chip time mine.yml 'norm bf16 m=16384 n=4096 rms' --json | grep -o '"us": [0-9.]*' | head -1 | cut -d' ' -f2)
awk "BEGIN {printf \"%.2f times\n\", $twice / $(cat us)}"
refuse() {
    printf "$1" >bad.csv
    orrery calibrate kernels bad.csv --like h200 -o bad.yml 2>&1
    echo "status $?, $(ls bad.yml 2>/dev/null | wc -l) files"
}
refuse 'us,kernel\n3,norm bf16 m=64 n=64 rms\n'
refuse 'kernel,us\nnorm bf16 m=4096 n=4096 rms\n'
refuse 'kernel,us\nnorm bf16 m=4096 n=4096 rms,-3\n'
refuse 'kernel,us\nnorm bf16 m=4096 n=4096 rms,fast\n'
refuse 'kernel,us\nnorm bf16 m=4096 rms,20\n'
refuse 'kernel,us\nnorm bf16 m=4096 n=4096 rms,20000\n'
refuse 'kernel,us\nnorm bf16 m=4096 n=4096 rms,20\n'
# A line of any length is one line; a read that fails is no end of the file.
refuse "kernel,us\n$(printf '%04000d' 0 | tr 0 x),3\n"
mkdir folder
orrery calibrate kernels folder --like h200 2>&1
printf 'like: nothing\n' >no.yml
orrery chip time no.yml 'launch bf16' 2>&1
printf 'like: h200\nkernels: {norms: {scale: 2}}\n' >no.yml
orrery chip time no.yml 'launch bf16' 2>&1
