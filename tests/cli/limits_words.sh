# SPDX-License-Identifier: Apache-2.0
# What is said of a run that was stopped, and of inputs that ask for too much: the truth, with the place.
printf 'num_ranks 2\nrank 0 {\nl1: calc 1000\nl2: send 1000b to 1\nl2 requires l1\nl3: calc 5000\nl3 requires l2\n}\nrank 1 {\nl1: recv 1000b from 0\n}\n' >s.goal
echo "stopped:"
orrery -q run s.goal -n loggops --max-events 1
echo "status $?"
orrery -q run s.goal -n loggops --max-events 2 --json 2>/dev/null | grep '"status"\|is_complete'
echo "finished:"
orrery -q run s.goal -n loggops --json | grep '"status"\|is_complete'
echo "stalled:"
printf 'num_ranks 2\nrank 0 {\nl1: calc 10\n}\nrank 1 {\nl1: recv 1000b from 0\n}\n' >stall.goal
orrery -q run stall.goal -n loggops --json 2>/dev/null | grep '"status"\|is_complete'
echo "noise:"
printf '0 10\n100 20\n150 900\n200 5\n' >noise.txt
orrery -q run s.goal -n loggops --noise noise.txt
echo "status $?"
printf '0 10\n' >noise.txt
orrery -q run s.goal -n loggops --noise noise.txt
echo "status $?"
echo "flows:"
printf '3 1 2\n2\n2 0 100Gbps 1us 0\n2 1 100Gbps 1us 0\n' >topology.txt
printf '2\n0 1 3 100 5000 0\n1 0 3 100 900000000000000 0\n' >flow.txt
orrery -q run --flows flow.txt -t topology.txt
echo "status $?"
