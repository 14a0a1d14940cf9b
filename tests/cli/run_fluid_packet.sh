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
for n in 8 12 16; do
    orrery gen goal gather -q --ranks $n --datasize 4MiB -o incast$n.orr
    orrery gen -q all_reduce --ranks $n --comm-size $((n << 20)) -o all_reduce$n.orr
    orrery gen -q all_to_all --ranks $n --comm-size $((n << 20)) -o all_to_all$n.orr
done
compare() {
    orrery run -q $1.orr -s $2.json -t $3.yml --compare fluid,packet --json >out.json
    python3 - "$1 $2 $3" <<'PY'
import json, sys
runs = json.load(open("out.json"))["runs"]
fluid, packet = (next(r for r in runs if r["network"] == n)["finished_ns"] for n in ("fluid", "packet"))
error = abs(fluid / packet - 1)
print(sys.argv[1], "within 3 %" if error <= 0.03 else f"{100 * error:.1f} % apart: {fluid} and {packet}")
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
compare all_reduce16 halving clos
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
