# SPDX-License-Identifier: Apache-2.0
# A machine with a table of its own: constants, rules by size, and what is wrong with others.
orrery machine show dgx-h100 --file | sed 's/^collectives:.*/collectives: table.yml/' > mine.yml
try() {
    cat > table.yml
    orrery nccl-tests --machine mine.yml -b 64K -e 64M -f 32 --choice 2>&1 | grep -v '^#'
}
try << 'Y'
generation: hopper
Simple: {base: 10us, step: 4us, rate: 0.9}
interval:
  large: {low: 0.95, high: 1.05}
choice:
  - {op: all_reduce, nodes: 1, below: 1MiB, algorithm: tree, protocol: LL}
  - {op: all_reduce, nodes: 2-8, algorithm: nvls-tree}
  - {op: all_reduce, ranks: 2-8, algorithm: ring, protocol: Simple}
Y
try << 'Y'
generation: hopper
simple: {base: 10us}
Y
try << 'Y'
generation: hopper
Simple: {base: 10}
Y
try << 'Y'
generation: hopper
Simple: {rate: 1.5}
Y
try << 'Y'
interval: {small: {low: 1.2}}
Y
try << 'Y'
choice:
  - {op: all_reduce, algorithm: circle}
Y
try << 'Y'
choice:
  - {op: all_reduce, algorithm: ring, below: 12}
  - {op: all_reduce, algorithm: ring, ranks: 8-2}
Y
rm table.yml
orrery nccl-tests --machine mine.yml
echo "status $?"
