# SPDX-License-Identifier: Apache-2.0
# Damaged topologies and rank files: one message each, with its place.
orrery -q gen all_reduce --ranks 8 -o a.orr
echo '{"scheduling-policy": "LIFO", "local-mem-bw": 100, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
for file in "$ORR_ROOT"/tests/broken/topology/*; do
    cp "$file" .
    orrery run a.orr -s sys.json -t "${file##*/}" 2>&1
    [ $? = 3 ] || echo "${file##*/}: status is not 3"
done
echo 'generate: {type: leaf-spine, ranks: 8, ranks_per_leaf: 4, spines: 2, bandwidth: 50GB/s}' >net.yml
for file in "$ORR_ROOT"/tests/broken/ranks/*; do
    cp "$file" .
    orrery run a.orr -s sys.json -t net.yml --ranks-file "${file##*/}" 2>&1
    [ $? = 3 ] || echo "${file##*/}: status is not 3"
done
