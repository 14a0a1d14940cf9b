# SPDX-License-Identifier: Apache-2.0
# room: chakra
# chakra_timeline_visualizer: milliseconds, its log, and a name cut at the comma; bad input leaves no file.
printf 'issue,x=0,x=1000,x=1,x=COMP_NODE f(x, y)\ncallback,x=0,x=2000,x=1,x=\nissue,x=0,x=2,x=7,x=COMP_NODE\n' > log.csv
chakra_timeline_visualizer --input_filename log.csv --output_filename out.json --num_npus 1 --npu_frequency 1000
cat out.json
echo
sed 's/\[.*\]/[when]/' debug.log
echo 'tissue,x=0,x=1,x=1,x=COMP_NODE' >> log.csv
chakra_timeline_visualizer --input_filename log.csv --output_filename bad.json --num_npus 1 --npu_frequency 1000 \
    --log_filename bad.log
echo "status $?"
sed 's/\[.*\]/[when]/' bad.log
ls bad.json 2>/dev/null
for frequency in 1.5GHz 1500 1500MHz 1.5ghz 1.0005GHz 0 -1 fast ''; do
    head -n 3 log.csv > good.csv
    chakra_timeline_visualizer --input_filename good.csv --output_filename "f.json" --num_npus 1 --npu_frequency "$frequency"
    echo "status $?"
    [ ! -e f.json ] || grep -o '"ts": [0-9.]*, "dur": [0-9.]*' f.json
    rm -f f.json
done
