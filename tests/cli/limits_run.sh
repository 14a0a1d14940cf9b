# SPDX-License-Identifier: Apache-2.0
# --max-time, --max-memory, --max-events: the run stops with what is known, in every engine, and the same number of
# events is the same place each time.
orrery gen -q all_reduce --ranks 4 --comm-size 8589934592 -o big
orrery gen -q all_reduce --ranks 4 --comm-size 65536 -o small
printf 'generate: {type: leaf-spine, ranks: 4, spines: 2, ranks_per_leaf: 4, bandwidth: 400Gb/s}\n' >net.yml
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >switch.yml
printf '{"scheduling-policy": "LIFO", "local-mem-bw": 1600, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]}' >sys.json
t() { orrery -q run "$@" >out 2>err; echo "status $?"; sed 's/reached: .*/reached/' err; head -1 out; }
echo "events:"
t big -s sys.json -t net.yml -n packet --max-events 10000
orrery -q run big -s sys.json -t net.yml -n packet --max-events 10000 >again 2>&1
cat err out | cmp - again
t small -s sys.json -t switch.yml -n aware --fold off --max-events 5
t small -s sys.json -t switch.yml --max-events 5
t small -n loggops --max-events 5
t small -n loggops --max-events 1000000
t small -s sys.json -t switch.yml --max-events 1000000
echo "time:"
t big -s sys.json -t net.yml -n packet --packet-keys 'APPROX 0' --max-time 500ms | sed 's/at .*: 0/at some time: 0/'
t small -s sys.json -t switch.yml --max-time 1h
echo "memory:"
t big -s sys.json -t net.yml -n packet --packet-keys 'APPROX 0' --max-memory 1MiB | sed 's/at .*: 0/at some time: 0/'
t small -s sys.json -t switch.yml --max-memory 64GiB
echo "json:"
orrery -q run big -s sys.json -t net.yml -n packet --max-events 10000 --json 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)' && echo valid
echo "usage:"
t small -s sys.json -t switch.yml --max-time 5
t small -s sys.json -t switch.yml --max-time 0s
t small -s sys.json -t switch.yml --max-memory much
t small -s sys.json -t switch.yml --max-events 0
# Stopped before its first event, every network has a table of what is known: nothing.
orrery -q stage gpt2 --dp 2 --layers 1 --batch 4 -o step.orr >/dev/null
for network in fluid unaware aware graph packet; do
    for fold in auto off; do
        for out in text --json; do
            orrery -q run step.orr --machine dgx-h100 -n $network --fold $fold --max-memory 1KiB --csv c.csv ${out#text} >out 2>err
            echo "$network $fold $out: status $?"
        done
    done
done | sed '/status 130$/d'
