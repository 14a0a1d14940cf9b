# SPDX-License-Identifier: Apache-2.0
# --machine beside run: device memory and number of ranks for stage, rates for serve, chip for gemm and capture.
orrery -q stage llama-3-8b --layers 2 --tp 8 --dp 4 --seq 512 --machine hgx-h200 -o s.orr | tail -n 1
orrery -q stage llama-3-8b --layers 2 --tp 8 --dp 4 --seq 512 --machine hgx-h200 --device-memory 40GB -o s.orr | tail -n 1
orrery -q stage llama-3-8b --layers 2 --tp 8 --dp 4 --seq 512 -o s.orr | tail -n 1
orrery -q stage llama-3-8b --tp 8 --dp 4 --machine dgx-h100:3 -o no.orr
echo "status $?"
[ ! -e no.orr ] || echo "written"
orrery -q serve llama-3-8b --tp 8 --machine dgx-b200 --json | grep -o '"[a-z_]*_per_s": [0-9]*\|"device_bytes": [0-9]*'
orrery -q serve llama-3-8b --tp 8 --machine dgx-b200 --memory-rate 1TB/s --json | grep -o '"memory_bytes_per_s": [0-9]*'
orrery -q serve llama-3-8b --tp 16 --machine dgx-b200:1
echo "status $?"
orrery gemm --example dlrm --machine dgx-h100:2 -o w.txt 2>&1 | sed -n 2,3p
orrery -q gemm --example dlrm --machine dgx-b200 -o w.txt
echo "status $?"
orrery -q gemm --example dlrm --machine dgx-h100 --hardware h200 -o w.txt
echo "status $?"
orrery -q capture --machine dgx-h10 train.py
echo "status $?"
orrery -q capture -n 12 --machine dgx-h100 train.py
echo "status $?"
