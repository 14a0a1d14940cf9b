# SPDX-License-Identifier: Apache-2.0
# Traces straight from shapes: the same nodes as through a text workload, as one file or many; clean under check.
orrery gemm -e dlrm -n 16 -q -o direct.orr
orrery gemm -e dlrm -n 16 -q | orrery convert text - --npus 16 --updates -q -o piped.orr
orrery check direct.orr
orrery view json direct.orr --rank 3 --format jsonl | grep -v '"format"\|input_file' >direct.jsonl
orrery view json piped.orr --rank 3 --format jsonl | grep -v '"format"\|input_file' >piped.jsonl
cmp direct.jsonl piped.jsonl && wc -l <direct.jsonl
orrery gemm -e gpt3_block --repeat 2 -n 4 --packages 2 -p HYBRID_DATA_MODEL --dims 2 --passes 2 -q -o gpt --form files
ls gpt.*
orrery check gpt
orrery gemm -e gpt3_block -n 4 --packages 2 -p HYBRID_DATA_MODEL -o gpt.orr 2>&1 | grep 'note: H'
