# SPDX-License-Identifier: Apache-2.0
small="--dmodel 256 --dff 1024 --head 8 --kvhead 4 --batch 16 --seq 128 --dvocal 1000"
orrery stage --compat --json --model-type gpt --layers 2 --pp 2 $small -o 'a "b"'
orrery stage --compat --json --model-type gpt --layers 2 --dp 2 $small -o set.orr | head -c 160
echo
ls
