# SPDX-License-Identifier: Apache-2.0
# The report of the reference for its smallest golden configuration, and what else is printed: nothing.
small="--dmodel 256 --dff 1024 --head 8 --kvhead 4 --batch 16 --seq 128 --dvocal 1000 --num_stacks 2"
for yes in true T 1 Yes y; do
    stage --output_dir o --output_name w.%d.et --model_type gpt $small --print_gpu_vram $yes
done
for no in false 0 on ''; do
    stage --output_dir o --output_name w.%d.et --model_type gpt $small --print_gpu_vram "$no"
done
stage --output_dir o --output_name w.%d.et --model_type debug $small --print_gpu_vram 1
