# SPDX-License-Identifier: Apache-2.0
# room: chakra
# Old names, wrong words: exit status 2; bad input: 3, and no output, not even for the first ranks.
printf 'MODEL\n1\na -1 1 NONE 0 2 NONE 0 -3 ALLREDUCE 8 5\n' >bad.txt
try() {
    "$@"
    echo "exit $?"
}
try chakra_converter Text --input bad.txt --output out --num-npus 2 --num-passes 1
try chakra_converter Text --output out --num-npus 2 --num-passes 1
try chakra_converter Text --input bad.txt --output out --num-passes 1
try chakra_converter Text --input bad.txt --output out --num-npus -2 --num-passes 1
try chakra_converter Json --input bad.txt
try chakra_converter PyTorch --input bad.txt --output out.et
try et_converter --input_type Text --input_filename bad.txt --output_filename out
try et_converter --input_type FlexFlow --input_filename bad.txt --output_filename out --num_dims 1
try et_converter --input_type FlexFlow --input_filename bad.txt --output_filename out --num_dims 1 --npu_frequency 1000
try et_converter --input_filename bad.txt --output_filename out
try chakra_converter Text --input nowhere.txt --output out --num-npus 2 --num-passes 1
try chakra_converter --log-filename no/where.log Text --input bad.txt --output out --num-npus 1 --num-passes 1
printf '{"schema": "1.0.1", "pid": 1, "time": "", "start_ts": 0, "nodes": [{"id": 2, "inputs": []}], "finish_ts": 1}' >old.json
try chakra_converter PyTorch --input old.json --output out.et
ls
