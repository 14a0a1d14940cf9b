# SPDX-License-Identifier: Apache-2.0
# Figures of a machine changed on the command line, or by a file with 'base': the same machine, the same times.
orrery machine show dgx-h100:4,scale_up.bandwidth=900GB/s,usd_per_hour=2.5,fabric.oversubscription=2
printf 'base: dgx-h100\nusd_per_hour: 2.5\nscale_up: {bandwidth: 900GB/s}\nfabric: {oversubscription: 2}\n' >mine.yml
orrery machine check mine.yml
orrery machine show mine.yml:4 --json >a
orrery machine show dgx-h100:4,scale_up.bandwidth=900GB/s,usd_per_hour=2.5,fabric.oversubscription=2 --json | cmp - a && echo "the same machine"
orrery machine show dgx-h100:4,nics.bandwidth=800Gb/s --file >written.yml
orrery machine show dgx-h100:1,watts=9000 --file | grep watts
# The power of a node is for its devices, unless it is given.
printf 'base: dgx-h100\ndevices: 4\n' >half.yml
printf 'base: dgx-h100\ndevices: 4\nwatts: 6000\n' >own.yml
for machine in half.yml own.yml dgx-h100,devices=4 dgx-h100,watts=6000,devices=4 dgx-h100,devices=4,watts=6000; do
    orrery machine show $machine | grep power
done
# In any order, as long as the whole holds together.
orrery machine show trainium2,devices=4,scale_up.size=[2,2] | sed -n 2p
orrery machine show trainium2,scale_up.size=[2,2],devices=4 | sed -n 2p
orrery -q gen all_reduce --ranks 32 --comm-size 268435456 -o ar.orr
orrery -q gen all_reduce --ranks 8 --comm-size 268435456 -o node.orr
for machine in dgx-h100 dgx-h100,scale_up.bandwidth=900GB/s; do
    orrery -q run node.orr --machine "$machine" --json | grep -o '"simulated_ns": [0-9]*' | cut -d' ' -f2
done | { read -r a; read -r b; echo "NVLink doubled, one node: $((b * 100 / a)) % of the time"; }
for machine in dgx-h100 dgx-h100,scale_up.bandwidth=900GB/s dgx-h100,nics.bandwidth=800Gb/s written.yml mine.yml; do
    echo "$machine $(orrery -q run ar.orr --machine "$machine" --json | grep -o '"simulated_ns": [0-9]*' | cut -d' ' -f2)"
done >times
awk '{ t[$1] = $2 } END {
    print "NVLink doubled, four nodes:", t["dgx-h100,scale_up.bandwidth=900GB/s"] == t["dgx-h100"] ? "the same: their NICs are the limit" : "DIFFERENT"
    print "NICs doubled:", t["dgx-h100,nics.bandwidth=800Gb/s"] < t["dgx-h100"] ? "faster" : "NOT FASTER"
    print "written and read again:", t["written.yml"] == t["dgx-h100,nics.bandwidth=800Gb/s"] ? "the same" : "DIFFERENT" }' times
try() {
    orrery machine show "$1" 2>&1 | sed -n '1s/ (name, .*//p; 1p' | head -n 1
}
try dgx-h100,scale_up.bandwith=3
try dgx-h100,scale_up.bandwidth=900
try dgx-h100:2,bogus=3
try dgx-h100,watts=1,foo
try dgx-h100,watts=
try trainium2,devices=5
try dgx-h100,base=dgx-a100
try nothing,watts=3
try "dgx-h100,note=a
watts: 3"
printf 'base: dgx-h10\n' >bad.yml
try bad.yml
