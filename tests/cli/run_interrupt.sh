# SPDX-License-Identifier: Apache-2.0
# Ctrl-C: what is known so far is printed, and the status says why it ended.
printf 'topology: [Switch]\nnpus_count: [512]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 512,
 "all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q all_reduce --ranks 512 -o step.orr
env --default-signal=INT orrery run step.orr -s sys.json -t net.yml --fold off --csv ranks.csv &
. "$ORR_ROOT/tests/cli/interrupt.inc"
interrupt $!
wait $!
status=$?
grep -c '^[0-9]*,,' ranks.csv
exit $status
