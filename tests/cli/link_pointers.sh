# SPDX-License-Identifier: Apache-2.0
# A job whose groups are named by their addresses, another one in each process, and described nowhere: names are united by
# what was done under them and by the numbers of the ranks, and the job runs.
mkdir job && python3 "$ORR_ROOT/tests/golden/torch_inputs.py" pointers job || exit 1
orrery link --ranks job -o job.orr 2>&1 | grep -E 'collectives|warning|rank 3'
orrery check job.orr
orrery info job.orr | grep -A5 'Collectives by group'
cat >system.json <<EOF
{"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 4,
 "all-reduce-implementation": ["ring"], "collective-optimization": "localBWAware", "local-mem-bw": 1600}
EOF
printf 'topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n' >network.yml
orrery run job.orr -s system.json -t network.yml | grep -E 'ranks finished|ALL_REDUCE'
