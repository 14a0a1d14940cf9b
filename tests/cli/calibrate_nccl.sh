# SPDX-License-Identifier: Apache-2.0
# A machine that is slower than ours is measured; the fit finds it again, and a machine file carries it.
orrery machine show dgx-h100 --file | sed 's/^collectives:.*/collectives: slow.yml/' > true.yml
cat > slow.yml << 'Y'
generation: hopper
LL: {base: 6us, step: 1.2us}
nvls: {base: 30us, rate: 0.6}
Y
orrery nccl-tests --machine true.yml -b 512 -e 8G > all_reduce.txt
orrery calibrate nccl all_reduce.txt --machine dgx-h100 -o mine.yml
cat mine.collectives.yml
grep collectives mine.yml
for machine in true.yml mine.yml; do
    orrery nccl-tests --machine $machine -b 1K -e 1G -f 1024 | grep -v '^#'
done
orrery nccl-tests --machine true.yml --op alltoall -b 512K -e 64M > alltoall.txt
orrery calibrate nccl alltoall.txt all_reduce.txt --machine mine.yml --rows | tail -n 12
sed '/Collective test/d' all_reduce.txt | orrery calibrate nccl - --machine dgx-h100 --json | head -c 300
