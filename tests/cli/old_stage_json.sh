# SPDX-License-Identifier: Apache-2.0
# room: stage
# As STAGE's documents type it, with a small model: rank files as JSON.
stage --output_dir generated/ --output_name workload_3.%d.json --comm_group_file comm_group_3.json --dp 4 --tp 4 --pp 2 \
    --sp 2 --weight_sharded 1 --chakra_schema_version json --num_stacks 2 --dmodel 512 --dff 1024 --head 16 --kvhead 8
ls generated | wc -l
ls generated | head -n 3
head -c 150 generated/workload_3.0.json
echo
stage --output_dir et --output_name w.%d.et --dp 2 --num_stacks 1 --chakra_schema_version json
stage --output_dir json --output_name w.%d.et --dp 2 --num_stacks 1 --format json
cmp et/w.1.et json/w.1.et && echo same
