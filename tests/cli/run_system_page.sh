# SPDX-License-Identifier: Apache-2.0
# The example files of docs/format/system.md run as the page says, and --logical on the packet network.
awk '/^```[a-z]+ [a-z.]+$/ { name = $2; next } /^```/ { name = "" } name { print > name }' "$ORR_ROOT/docs/format/system.md"
ls
sed -n 's/^    \(orrery .*\)/\1/p' "$ORR_ROOT/docs/format/system.md" > commands
cat commands
bash -eu commands > table.txt
orrery run job.orr -s system.json -t network.yml -m memory.json -g groups.json --json > result.json
grep -E '^  "(status|simulated_ns|ranks|finished_ranks)"' result.json
orrery gen topology -q leaf-spine --hosts 4 --hosts-per-leaf 4 --spines 1 --nic 400Gbps -f ns3 -o topology.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt CC_MODE 0 RATE_AI 50Mb/s RATE_HAI 100Mb/s L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1
GLOBAL_T 0 VAR_WIN 1 BUFFER_SIZE 32
KMIN_MAP 1 400000000000 800 KMAX_MAP 1 400000000000 3200 PMAX_MAP 1 400000000000 0.2
END
orrery run job.orr -s system.json -t config.txt -n packet --logical logical.json --json | grep -E '^  "(status|finished_ranks)"'
