# SPDX-License-Identifier: Apache-2.0
# room: stage
# The same traces in our spelling, in the old one, under the old name, out of a set, with a tag base of 0.
small="--dmodel 256 --dff 1024 --head 8 --kvhead 4 --batch 16 --seq 128 --dvocal 1000 --dp 2 --tp 2 --pp 2"
orrery stage --compat --model-type gpt --layers 2 $small -o ours
orrery stage --compat --output_dir a/b --output_name ours.%d.et --model_type gpt --num_stacks 2 $small
stage --output_dir old --output_name ours --model_type gpt --num_stacks 2 $small --chakra_schema_v v0.0.1 --tag_base 0
orrery stage --compat -q --model-type gpt --num_stacks 2 $small -o set.orr
orrery convert -q et set.orr -o from_set
ls . a/b old
for r in 0 1 2 3 4 5 6 7; do
    cmp ours.$r.et a/b/ours.$r.et && cmp ours.$r.et old/ours.$r.et && cmp ours.$r.et from_set.$r.et
done
cmp ours.json a/b/ours.json && cmp ours.json old/ours.json && cat ours.json
echo
stage --output_dir named --output_name w.%d.et --comm_group_file groups.json --model_type debug --dp 2 && ls named
orrery stage --compat -q --model-type debug -o one.et && orrery check one.et
orrery check set.orr
