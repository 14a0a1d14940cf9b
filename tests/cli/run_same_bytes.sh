# SPDX-License-Identifier: Apache-2.0
# The same run gives the same bytes: twice, and with another number of threads.
orrery gen -q data_parallel --ranks 16 -o step
printf 'topology: [Ring, Switch]\nnpus_count: [4, 4]\nbandwidth: [50, 25]\nlatency: [500, 700]\n' > net.yml
printf '{"scheduling-policy":"LIFO","collective-optimization":"localBWAware","local-mem-bw":1600,' > sys.json
printf '"preferred-dataset-splits":4,"active-chunks-per-dimension":2,' >> sys.json
printf '"all-reduce-implementation":["ring","halvingDoubling"]}' >> sys.json
printf '{"memory-type":"MEMORY_POOL","remote-mem-bw":100}' > mem.json
for threads in 1 1 2 5; do
    for network in unaware aware graph; do
        orrery run step -s sys.json -t net.yml -m mem.json -n $network --threads $threads --json \
            --critical-path --csv $network.csv --timeline $network.timeline.json > $network.json || exit 1
    done
    cat *.csv *.timeline.json unaware.json aware.json graph.json | grep -v '"threads"' | cksum >> sums
done
uniq sums | wc -l
