# SPDX-License-Identifier: Apache-2.0
# Two sizes on two networks, side by side and as a drawing; and stretches passed over, with the same time.
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [46.5661]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy":"LIFO","local-mem-bw":1600,"preferred-dataset-splits":1,"all-reduce-implementation":["ring"]}' >sys.json
orrery -q gen all_reduce --ranks 4 --comm-size 16384 -o small.orr
orrery -q gen all_reduce --ranks 4 --comm-size 16777216 -o large.orr
orrery -q run small.orr -s sys.json -t net.yml --compare unaware,packet --compare-traces large.orr --compare-chart c.svg |
    cut -c1-40
grep -c '<rect' c.svg
grep -o '>small<\|>large<\|>unaware<\|>packet<' c.svg
for flag in '' --approx; do
    orrery -q run large.orr -s sys.json -t net.yml --network packet $flag | grep -E 'finished after [0-9]|APPROX' |
        sed 's/[0-9.]* % of the run/some of the run/'
done
orrery run small.orr -s sys.json -t net.yml --compare-chart c.svg 2>&1
orrery run small.orr -s sys.json -t net.yml --approx 2>&1
orrery run small.orr -s sys.json -t net.yml --network packet --approx --packet-keys 'TRANSPORT selective' 2>&1
