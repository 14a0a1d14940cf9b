# SPDX-License-Identifier: Apache-2.0
# No collective beats the line rate of its ports on the default network, whatever the keys of the system file: a ring
# all-reduce of 1 GiB over 8 ranks once took 1.19 ms where the links allow 3.89, a direct all-to-all 25 us where they allow
# 1,321.  And none takes twice that.
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [450]\nlatency: [500]\n' >n8.yml
printf 'topology: [Switch]\nnpus_count: [64]\nbandwidth: [46.566]\nlatency: [500]\n' >n64.yml
printf 'topology: [Switch, Switch]\nnpus_count: [8, 4]\nbandwidth: [419, 46.566]\nlatency: [500, 1000]\n' >n32.yml
orrery gen -q all_reduce --ranks 8 --comm-size 1073741824 -o r8.orr
orrery gen -q all_to_all --ranks 64 --comm-size 67108864 -o a64.orr
orrery gen -q all_reduce --ranks 32 --comm-size 1073741824 -o r32.orr
bounds() { # NAME LEAST_NS MOST_FACTOR RUN...
    ns=$(orrery -q run "${@:4}" --json | sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p')
    awk -v ns="$ns" -v least="$2" -v most="$3" -v what="$1" 'BEGIN {
        print what, (ns < least ? "too fast: " ns : ns > most * least ? "too slow: " ns : "within bounds")}'
}
system() {
    printf '{"scheduling-policy": "LIFO", "preferred-dataset-splits": %s, "active-chunks-per-dimension": %s,
 "local-mem-bw": 3350, "collective-optimization": "%s", "all-reduce-implementation": [%s],
 "all-to-all-implementation": ["direct"]}' "$1" "$2" "$3" "$4" >sys.json
}
# 2 x 7/8 x 2^30 bytes over 450 GiB/s; 63/64 x 2^26 over 50 GB/s; 32 ranks: 2 x 3/4 x 2^30 / 8 of each NIC at least.
for keys in '1 1' '4 1' '4 2' '4 4' '16 4'; do
    system $keys baseline '"ring"'
    bounds "all-reduce of 8, splits and chunks $keys:" 3888888 1.35 r8.orr -s sys.json -t n8.yml
done
for keys in '1 1 localBWAware' '4 4 localBWAware' '16 4 localBWAware'; do
    system $keys '"ring", "ring"'
    bounds "all-reduce of 32, $keys:" 4026531 9 r32.orr -s sys.json -t n32.yml
done
system 4 4 baseline '"ring", "ring"' # all of it through every dimension: 2 x 3/4 x 2^30 bytes of each NIC
bounds "all-reduce of 32, 4 4 baseline:" 32212254 1.2 r32.orr -s sys.json -t n32.yml
echo '{}' >plain.json
bounds "all-reduce of 8, no algorithm:" 3888888 1.4 r8.orr -s plain.json -t n8.yml
bounds "all-reduce of 32, no algorithm:" 4026531 1.6 r32.orr -s plain.json -t n32.yml
system 1 1 baseline '"ring"'
bounds "all-to-all of 64:" 1321205 1.1 a64.orr -s sys.json -t n64.yml
bounds "all-to-all of 64, no algorithm:" 1321205 1.25 a64.orr -s plain.json -t n64.yml
