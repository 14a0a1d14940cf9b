# SPDX-License-Identifier: Apache-2.0
# The network fluid beside the packet engine, messages of 1 MiB and more on lossless fabrics: no more than 3 % apart.
echo '{"scheduling-policy": "LIFO", "preferred-dataset-splits": 1, "local-mem-bw": 100000, "all-reduce-implementation": ["ring"],
 "all-to-all-implementation": ["direct"]}' >ring.json
sed 's/"ring"/"halvingDoubling"/' ring.json >halving.json
orrery gen topology -q switch --hosts 8 --nic 50GB/s -o switch.yml
orrery gen topology -q leaf-spine --hosts 16 --hosts-per-leaf 4 --spines 4 --nic 50GB/s -o clos.yml
orrery gen topology -q leaf-spine --hosts 16 --hosts-per-leaf 4 --spines 2 --oversubscription 4 --nic 50GB/s -o over.yml
orrery gen topology -q rail --servers 2 --gpus 8 --nic 50GB/s --nvlink 450GB/s -o rails.yml
orrery gen topology -q fat-tree --k 4 --nic 50GB/s -o fat.yml
orrery gen topology -q dragonfly --routers 2 --hosts-per-router 2 --global-links 1 --nic 50GB/s -o dragonfly.yml
printf 'generate: {type: torus, size: [4, 4], bandwidth: 50GB/s, latency: 500ns}\ndims: [4, 4]\n' >torus.yml
sed 's/"all-reduce.*/"collective-optimization": "localBWAware", "all-reduce-implementation": ["ring", "ring"]}/; 2d' ring.json >torus.json
printf 'generate: {type: torus, size: [4, 4], bandwidth: 50GB/s, latency: 500ns}\n' >flat.yml
orrery gen topology -q leaf-spine --hosts 32 --hosts-per-leaf 4 --spines 2 --oversubscription 4 --nic 50GB/s -o over32.yml
for n in 8 12 16; do
    orrery gen goal gather -q --ranks $n --datasize 4MiB -o incast$n.orr
    orrery gen -q all_reduce --ranks $n --comm-size $((n << 20)) -o all_reduce$n.orr
    orrery gen -q all_to_all --ranks $n --comm-size $((n << 20)) -o all_to_all$n.orr
done
orrery gen -q all_reduce --ranks 32 --comm-size $((32 << 20)) -o all_reduce32.orr
limit=0.03
compare() {
    orrery run -q $1.orr -s $2.json -t $3.yml --compare fluid,packet --json ${4:+--packet-keys "$4"} >out.json
    python3 - "$1 $2 $3${4:+ $4}" $limit <<'PY'
import json, sys
runs = json.load(open("out.json"))["runs"]
fluid, packet = (next(r for r in runs if r["network"] == n)["finished_ns"] for n in ("fluid", "packet"))
error, limit = abs(fluid / packet - 1), float(sys.argv[2])
print(sys.argv[1], f"within {100 * limit:.0f} %" if error <= limit else f"{100 * error:.1f} % apart: {fluid} and {packet}")
PY
}
compare all_reduce8 ring switch
compare all_reduce8 halving switch
compare all_to_all8 ring switch
compare all_reduce16 ring clos
compare all_to_all16 ring clos
compare all_to_all16 ring over
compare all_to_all16 ring rails
compare all_reduce16 ring fat
compare all_to_all16 ring fat
compare all_reduce16 ring over
compare all_reduce16 halving over
compare all_reduce16 halving rails
compare all_reduce16 torus torus
compare all_reduce12 ring dragonfly
compare all_to_all12 ring dragonfly
compare incast8 ring switch
for net in clos over rails fat; do
    compare incast16 ring $net
done
compare incast12 ring dragonfly
# Messages of a pair go in order, hosts that forward take turns, and a hash picks the same of equal routes.
compare all_reduce16 ring flat
compare all_to_all16 ring flat
compare all_reduce32 ring over32
# A flow that waits at two full links gets less than one that waits at one, in both.
compare all_reduce16 halving clos
compare all_reduce16 halving fat
compare all_reduce16 halving flat
# The same with three flows over two links: 0 -> 3 shares one with 1 -> 4 and the other with 2 -> 5.
cat >lot.yml <<'END'
ranks: 6
switches: [a, b, c]
links:
  - {from: "0-1", to: a, bandwidth: 50GB/s, latency: 500ns}
  - {from: 2, to: b, bandwidth: 50GB/s, latency: 500ns}
  - {from: 4, to: b, bandwidth: 50GB/s, latency: 500ns}
  - {from: 3, to: c, bandwidth: 50GB/s, latency: 500ns}
  - {from: 5, to: c, bandwidth: 50GB/s, latency: 500ns}
  - {from: a, to: b, bandwidth: 50GB/s, latency: 500ns}
  - {from: b, to: c, bandwidth: 50GB/s, latency: 500ns}
END
{
    echo num_ranks 6
    for rank in 0 1 2; do echo "rank $rank {
l1: send 8388608b to $((rank + 3)) tag 0
}"; done
    for rank in 3 4 5; do echo "rank $rank {
l1: recv 8388608b from $((rank - 3)) tag 0
}"; done
} >lot.goal
for net in fluid packet; do
    orrery run -q lot.goal -s ring.json -t lot.yml -n $net --csv lot.csv >lot.out
    python3 - $net <<'PY'
import csv, sys
rows = csv.DictReader(line for line in open("lot.csv") if line[0] != "#")
end = [int(r["finished_at_ns"]) for r in rows]
print(sys.argv[1], "ends: long flow %.0f us, short ones %.0f and %.0f us" % tuple(end[i] / 1e3 for i in (3, 4, 5)))
PY
done
# ACKs go first, so that a window of one round trip is enough where links behind the NICs are slow.  Without that it is not.
cat >slow.yml <<'END'
ranks: 4
switches: [a, b]
links:
  - {from: "0-1", to: a, bandwidth: 25GB/s, latency: 150ns}
  - {from: "2-3", to: b, bandwidth: 25GB/s, latency: 150ns}
  - {from: a, to: b, bandwidth: 12.5GB/s, latency: 2us}
END
orrery gen -q all_reduce --ranks 4 --comm-size 16777216 -o all_reduce4.orr
compare all_reduce4 ring slow
limit=0.30
compare all_reduce4 ring slow "ACK_HIGH_PRIO 0"
