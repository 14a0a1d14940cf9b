# SPDX-License-Identifier: Apache-2.0
# Input that cannot be simulated leaves no report and no timeline behind.
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy":"LIFO","local-mem-bw":1600,"all-reduce-implementation":["ring"]}' >sys.json
orrery -q gen data_parallel --ranks 4 -o step.orr
orrery run step.orr -s sys.json -t net.yml --report r.html --timeline t.json --csv r.csv
echo "status $?"
ls
