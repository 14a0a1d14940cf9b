# SPDX-License-Identifier: Apache-2.0
# What is built in, and a file to begin with that says the same as the name of a design.
orrery gemm --list-hardware | awk 'length > 80'
orrery gemm --list-hardware | awk '{print $1}' >names.txt
orrery chip list | awk 'NR > 1 {print $1}' | cmp - names.txt && echo "the chips of chip list"
orrery gemm --list-hardware --json | python3 -c 'import json, sys; print(*(c["name"] for c in json.load(sys.stdin)["chips"]), sep="\n")' | cmp - names.txt
orrery gemm --list-designs | awk 'length > 80'
orrery gemm --list-designs | awk '{print $1}'
orrery gemm --list-designs --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["designs"]))'
orrery gemm --list-examples
orrery gemm --list-examples --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["examples"]))'
orrery gemm --design tpu-v4 --print | tee chip.yml
orrery gemm -e dlrm --print | cmp - "$ORR_ROOT/examples/dlrm.csv"
orrery gemm -e resnet50 -n 8 --design chip.yml -q >file.txt
orrery gemm -e resnet50 -n 8 --design tpu-v4 -q | cmp - file.txt
orrery gemm -e resnet50 -n 8 -w chip.yml -q | cmp - file.txt
