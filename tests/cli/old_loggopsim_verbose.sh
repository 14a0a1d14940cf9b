# SPDX-License-Identifier: Apache-2.0
# room: loggopsim
# LogGOPSim -v: the result is the same, and a line says where the events are now.
printf 'num_ranks 2\nrank 0 {\na: send 100b to 1\n}\nrank 1 {\na: recv 100b from 0\n}\n' >p.goal
LogGOPSim -f p.goal | sed 's/Time: .*//' >plain
LogGOPSim -v -f p.goal | sed 's/Time: .*//' >verbose
cmp plain verbose && echo same
LogGOPSim --verbose -f p.goal -V viz.out >out
echo "status $?: $(grep -c . viz.out) lines"
LogGOPSim -v -q -f p.goal >out
