# SPDX-License-Identifier: Apache-2.0
# A link-level topology: which links were busy, in the table and in the JSON object.
orrery -q gen send_recv_ring --ranks 4 --comm-size 1000000 -o ring.orr
echo '{"scheduling-policy": "LIFO"}' >sys.json
cat >net.yml <<'END'
ranks: 4
switches: [leaf0, leaf1, top]
bandwidth: 50GB/s
latency: 500ns
links:
  - {from: 0-1, to: leaf0}
  - {from: 2-3, to: leaf1}
  - {from: "leaf[0-1]", to: top, bandwidth: 80Gb/s}
END
orrery run ring.orr -s sys.json -t net.yml --network graph
orrery run ring.orr -s sys.json -t net.yml --json --network graph |
    python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["links"]["used"], r["links"]["busiest"][0]); print(r["dimensions"])'
