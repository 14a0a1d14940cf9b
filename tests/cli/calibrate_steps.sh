# SPDX-License-Identifier: Apache-2.0
# A chip from logs: lines of Megatron-LM, DeepSpeed and torchtitan and bare milliseconds give the same step; what cannot be is
# refused with its line, and nothing is written.
for ms in 900 850 220 200 210 205 215; do
    echo " iteration 7/ 100 | consumed samples: 12 | elapsed time per iteration (ms): $ms.0 | learning rate: 1e-4 |" >>megatron.log
    echo "steps: 7 loss: 2.1 iter time (s): $(awk "BEGIN {print $ms / 1000}") samples/sec: 30.1" >>deepspeed.log
    printf '\033[31mstep: 7  loss: 2.1  memory: 40GiB  tps: %s  mfu: 40%%\033[39m\n' "$(awk "BEGIN {printf \"%.4f\", 16384000 / $ms}" | sed 's/^\([0-9]*\)\([0-9]\{3\}\)\./\1,\2./')" >>titan.log
    echo "$ms" >>plain.txt
done
echo "nothing of interest" >>megatron.log
orrery -q calibrate steps megatron.log --predicted 200 --like h200 -o mine.yml
orrery -q calibrate steps deepspeed.log --predicted 200 --like h200
orrery -q calibrate steps titan.log --predicted 200 --like h200 --tokens 16384
orrery -q calibrate steps - --predicted 200 --like h200 <plain.txt
orrery -q calibrate steps plain.txt --predicted 200 --like h200 --skip 0 --json
head -4 mine.yml
before=$(orrery -q chip time h200 'gemm bf16 m=4096 n=4096 k=4096' --json | grep -o '"us": [0-9.]*' | head -1 | cut -d' ' -f2)
after=$(orrery -q chip time mine.yml 'gemm bf16 m=4096 n=4096 k=4096' --json | grep -o '"us": [0-9.]*' | head -1 | cut -d' ' -f2)
awk "BEGIN {printf \"%.2f times\n\", $after / $before}"
refuse() {
    orrery calibrate steps "$@" -o bad.yml 2>&1
    echo "status $?, $(ls bad.yml 2>/dev/null | wc -l) files"
}
refuse titan.log --predicted 200 --like h200
refuse plain.txt --predicted 2 --like h200
refuse plain.txt --predicted soon --like h200
refuse plain.txt --predicted 200 --like h900
refuse nowhere.log --predicted 200 --like h200
echo "elapsed time per iteration (ms): soon" >bad.log
refuse bad.log --predicted 200 --like h200
printf '200\n0\n' >bad.log
refuse bad.log --predicted 200 --like h200
printf '200\n201\n' >bad.log
refuse bad.log --predicted 200 --like h200
# The number to skip and the steps that are needed are more than a size can hold.
refuse plain.txt --predicted 200 --like h200 --skip 18446744073709551615
