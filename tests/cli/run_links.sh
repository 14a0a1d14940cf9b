# SPDX-License-Identifier: Apache-2.0
# Every link that carried something, for two models that must agree; a model without links says so before
# it runs.
orrery -q gen send_recv_ring --ranks 6 --comm-size 1000000 -o ring.orr
echo '{"scheduling-policy": "LIFO", "collective-optimization": "baseline"}' >sys.json
printf 'topology: [Ring, Switch]\nnpus_count: [3, 2]\nbandwidth: [50, 10]\nlatency: [500, 1000]\n' >net.yml
orrery run ring.orr -s sys.json -t net.yml -n aware --links aware.csv >aware.txt
orrery run ring.orr -s sys.json -t net.yml -n graph --links graph.csv >graph.txt
cat aware.csv
cmp aware.csv graph.csv && diff aware.txt graph.txt
orrery run ring.orr -s sys.json -t net.yml -n unaware --links none.csv >unaware.txt
echo "status $?, $(wc -c <unaware.txt) bytes of results"
