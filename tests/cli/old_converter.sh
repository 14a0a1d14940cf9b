# SPDX-License-Identifier: Apache-2.0
# room: chakra
# chakra_converter in its later and its earlier form, et_converter; the log; what is not there.
printf 'DATA\n1\na -1 1 NONE 0 2 NONE 0 3 ALLREDUCE 8 5\n' >t.txt
chakra_converter | head -n 1
echo stale >debug.log
chakra_converter Text --input t.txt --output new --num-npus 2 --num-passes 1
grep -c stale debug.log
sed 's/\[.*\]/[time]/' debug.log
chakra_converter --log-filename my.log -q Text --input t.txt --output again --num-npus 2 --num-passes 1
chakra_converter --input_type Text --input_filename t.txt --output_filename mid --num_npus 1 --num_passes 1
et_converter --input_type Text --input_filename t.txt --output_filename dims --num_dims 2 --num_npus 1 --num_passes 1 \
    --log_filename old.log
for file in new.1 mid.0 dims.0; do
    orrery view json $file.et --format jsonl | tail -n 1
done
cmp new.1.et again.1.et
ls
