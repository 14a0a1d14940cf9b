# SPDX-License-Identifier: Apache-2.0
# What is built in, and a file to begin with that says the same as the name.
orrery gemm --list-hardware | awk 'length > 80'
orrery gemm --list-hardware | awk '{print $1}'
orrery gemm --list-hardware --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["chips"]))'
orrery gemm --list-examples
orrery gemm --list-examples --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["examples"]))'
orrery gemm --hardware tpu-v4 --print | tee chip.yml
orrery gemm -e dlrm --print | cmp - "$ORR_ROOT/examples/dlrm.csv"
orrery gemm -e resnet50 -n 8 -w chip.yml -q >file.txt
orrery gemm -e resnet50 -n 8 -w tpu-v4 -q | cmp - file.txt
