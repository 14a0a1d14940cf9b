# SPDX-License-Identifier: Apache-2.0
# Files of ranks that differ in groups, peers and tags only are one class: the run is folded as that of the set, a set made
# of the files is small, and they come out of it byte for byte.
printf 'topology: [Switch, Switch]\nnpus_count: [4, 8]\nbandwidth: [400, 50]\nlatency: [500, 1000]\n' >net.yml
printf '{"scheduling-policy": "LIFO", "collective-optimization": "baseline", "local-mem-bw": 3000, "roofline-enabled": 1,
  "peak-perf": 600, "preferred-dataset-splits": 2, "active-chunks-per-dimension": 1, "endpoint-delay": 10}' >sys.json
for how in "llama-3-8b --tp 4 --pp 2 --dp 4 --batch 8" "mixtral-8x7b --tp 2 --pp 2 --dp 8 --ep 4 --batch 16 --zero 3"; do
    rm -rf files again step.orr back.orr
    mkdir files again
    orrery stage -q $how --seq 512 -o step.orr >/dev/null
    orrery convert -q et step.orr -o files/r >/dev/null
    for network in fluid unaware; do
        orrery run -q step.orr -s sys.json -t net.yml --network $network >set.txt
        orrery run -q files/r -s sys.json -t net.yml --network $network >files.txt
        cmp set.txt files.txt
        tail -1 files.txt | sed 's/.*; //'
        orrery run -q files/r -s sys.json -t net.yml --network $network --fold verify --fold-why 2>&1 >/dev/null
    done
    orrery convert et files/r -o back.orr
    orrery convert -q et back.orr -o again/r >/dev/null
    diff -r files again
    test $(stat -c %s back.orr) -lt $(($(stat -c %s step.orr) * 11 / 10)) || echo too large
done
# One rank with another name for a node is a class of its own.
orrery convert -q et files/r.5.et -o five.json >/dev/null
sed 's/"name": *"\([^"]*\)attn/"name":"\1ATTN/' five.json >other.json
cmp -s five.json other.json && echo nothing changed
orrery convert -q et other.json -o files/r.5.et >/dev/null
orrery convert et files/r -o back.orr
