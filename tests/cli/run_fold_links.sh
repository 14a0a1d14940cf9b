# SPDX-License-Identifier: Apache-2.0
# Fluid on rings and fully connected dimensions: links that carry the same are simulated once, and times and links are those of
# every rank simulated.
orrery stage -q llama-3-8b --tp 4 --pp 2 --dp 8 --batch 16 --seq 512 --layers 4 -o step.orr >/dev/null
orrery stage -q mixtral-8x7b --tp 2 --pp 2 --dp 16 --ep 8 --batch 32 --seq 512 --layers 4 -o experts.orr >/dev/null
printf '{"roofline-enabled": 1, "peak-perf": 600, "local-mem-bw": 3000}' >sys.json
for shape in FullyConnected,Switch Ring,Switch Ring,Ring Switch,FullyConnected; do
    printf 'topology: [%s]\nnpus_count: [8, 8]\nbandwidth: [400, 50]\nlatency: [500, 1000]\n' $shape >net.yml
    for traces in step.orr experts.orr; do
        orrery run -q $traces -s sys.json -t net.yml --fold verify --fold-why 2>&1 >/dev/null
        orrery run -q $traces -s sys.json -t net.yml --links some.csv >some.txt
        orrery run -q $traces -s sys.json -t net.yml --links all.csv --fold off >all.txt
        cmp some.csv all.csv
    done
done
orrery run -q step.orr --machine mi300x --fold-why 2>&1 >/dev/null
printf 'ranks: [{ranks: 3, compute: 0.8}]' >slow.yml
orrery run -q step.orr --machine mi300x --ranks-file slow.yml --fold verify --fold-why 2>&1 >/dev/null
orrery run -q step.orr --machine mi300x --steps 20 --fold verify --fold-why 2>&1 >/dev/null
