# SPDX-License-Identifier: Apache-2.0
# The table of nccl-tests: sizes, counts of parts, choice, JSON.
orrery nccl-tests --machine dgx-h100 -b 1K -e 1G -f 32 --choice
orrery nccl-tests --machine dgx-a100:2 --op alltoall --ranks 4 --per-node 2 -b 1M -e 4M -d half
orrery nccl-tests --machine gb200-nvl72 --op sendrecv -n 2 -b 64M -e 192M -i 64M | grep -v '^#'
orrery nccl-tests --machine dgx-h100:16 -b 1G -e 1G --json
orrery nccl-tests --machine dgx-h100:16 -b 1G -e 1G --collnet --choice | grep -v '^#'
