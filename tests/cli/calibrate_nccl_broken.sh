# SPDX-License-Identifier: Apache-2.0
# Outputs that are not whole, or not of nccl-tests: status 3, one line with file and line, nothing written.
orrery nccl-tests --machine dgx-h100 -b 1K -e 1G > good.txt
orrery nccl-tests --machine dgx-h100 --op all_gather -b 1K -e 1G | sed '/Collective test/d' > all_gather.txt
try() {
    name=$1
    shift
    orrery calibrate nccl "$name" --machine dgx-h100 -o x.yml "$@"
    echo "$name: status $?"
    [ -e x.yml ] || [ -e x.collectives.yml ] && echo "something was written"
    rm -f x.yml x.collectives.yml
}
head -n 24 good.txt > cut_rows.txt
head -n 24 good.txt | head -c -20 > cut_line.txt
sed '/Avg bus/d' good.txt > no_end.txt
sed 's/ time / median /g' good.txt > columns.txt
sed 's/(us)/(ms)/g' good.txt > units.txt
sed 's/^ *1048576 /    -1048576 /' good.txt > negative_size.txt
awk '/^ *1048576 /{$6 = "-3.5"} {print}' good.txt > negative_time.txt
awk '/^ *1048576 /{$6 = "nan"} {print}' good.txt > nan.txt
awk '/^ *1048576 /{$7 = "99.9"} {print}' good.txt > unlike.txt
cat good.txt good.txt > twice.txt
sed '/Rank/d' good.txt > no_ranks.txt
sed '/^ /d' good.txt > no_rows.txt
awk '!/^ /||/ 1024 | 2048 | 4096 /' good.txt > few.txt
printf 'hello\n' > text.txt
: > empty.txt
for file in cut_rows cut_line no_end columns units negative_size negative_time nan unlike twice no_ranks no_rows few text empty all_gather; do
    try $file.txt
done
try nowhere.txt
try good.txt --ranks 1
try no_ranks.txt --ranks 8 -q > fine.txt
tail -n 1 fine.txt
try all_gather.txt --op all_gather -q | tail -n 2
orrery calibrate nccl good.txt --machine dgx-h100 -o no/such/x.yml
echo "status $?"
orrery calibrate
echo "status $?"
