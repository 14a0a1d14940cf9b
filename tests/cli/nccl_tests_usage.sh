# SPDX-License-Identifier: Apache-2.0
# Wrong options: one message each, status 2, no table.
try() {
    "$@"
    echo "status $?"
}
try orrery nccl-tests
try orrery nccl-tests --machine dgx-h101
try orrery nccl-tests --machine tpu-v4,collectives=none
try orrery nccl-tests --machine dgx-h100 --op barrier
try orrery nccl-tests --machine dgx-h100 -b 8X
try orrery nccl-tests --machine dgx-h100 -b -8
try orrery nccl-tests --machine dgx-h100 -b 0
try orrery nccl-tests --machine dgx-h100 -b 2M -e 1M
try orrery nccl-tests --machine dgx-h100 -b 1 -e 8G -i 1
try orrery nccl-tests --machine dgx-h100:2 --ranks 17
try orrery nccl-tests --machine dgx-h100:2 --ranks 16 --per-node 4
try orrery nccl-tests --machine dgx-h100 --per-node 9
try orrery nccl-tests --machine dgx-h100 --op all_gather -b 8 -e 64
try orrery nccl-tests --machine dgx-h100 --op all_gather --algorithm tree
try orrery nccl-tests --machine dgx-h100 --algorithm nvls --protocol LL --json
try orrery nccl-tests --machine dgx-h100 --algorithm circle
try orrery nccl-tests --machine dgx-h100 -d quad
try orrery calibrate nccl x --machine dgx-h100 --op barrier
