# SPDX-License-Identifier: Apache-2.0
# Keys that nobody knows are errors with line, column and the nearest key, in every file of a run.
orrery -q gen all_reduce --ranks 8 -o ar.orr
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [450]\nlatency: [500]\n' >net.yml
printf '{"scheduling-policy": "LIFO",\n "roofline-enabledx": 1}\n' >sys.json
orrery run ar.orr -s sys.json -t net.yml
echo "status $?"
printf 'chip: h100\ndevices: 8\nscale_up:\n  bandwith: 450GB/s\n' >machine.yml
orrery run ar.orr --machine machine.yml
echo "status $?"
printf 'topology: [Switch]\nnpus_count: [8]\nbandwith: [450]\nlatency: [500]\n' >typo.yml
printf '{"scheduling-policy": "LIFO"}\n' >sys.json
orrery run ar.orr -s sys.json -t typo.yml
echo "status $?"
printf 'topology: [Switch]\nnpus_count: [8]\nbandwidth: [450]\nlatency: [500]\nlatencys: [1]\n' >more.yml
orrery run ar.orr -s sys.json -t more.yml
echo "status $?"
printf '{"memory-type": "MEMORY_POOL",\n "remote-mem-bandwidth": 100}\n' >memory.json
orrery run ar.orr -s sys.json -t net.yml -m memory.json
echo "status $?"
