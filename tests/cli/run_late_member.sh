# SPDX-License-Identifier: Apache-2.0
# A member of a broadcast that is over before the last one comes has waited until its end, and no longer.
orrery gen -q broadcast -n 4 --comm-size 100000 -o b.orr >/dev/null
printf 'topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "endpoint-delay": 10, "preferred-dataset-splits": 1, "local-mem-bw": 3350,
 "broadcast-implementation": ["ring"]}\n' >sys.json
printf 'ranks: [{ranks: 3, delay: 1ms}]\n' >late.yml
orrery run -q b.orr -s sys.json -t net.yml -n unaware --ranks-file late.yml --json |
    jq -r '.per_rank[] | "\(.rank) \(.finished_at_ns) \(.exposed_communication_ns) \(.waiting_ns) \(.idle_ns)"'
