# SPDX-License-Identifier: Apache-2.0
# room: loggopsim
# Schedules on LogGOPS: text, binary, by the rules of the old programs, as JSON; jobs; other networks; what cannot be.
printf 'num_ranks 2\nrank 0 {\na: send 100b to 1\nb: recv 100b from 1\n}\n' > p.goal
printf 'rank 1 {\na: recv 100b from 0\nb: send 100b to 0\nb requires a\n}\n' >> p.goal
orrery run p.goal
orrery convert goal p.goal -o p.bin
orrery run p.bin --network loggops --compat atlahs --loggops ai
orrery run p.goal --loggops L=1,o=2,g=3,G=1 --json
orrery run p.goal --job p.bin --hosts 6 --placement spread --csv out.csv > text
tail -n +3 out.csv
LogGOPSim -f p.bin | sed 's/Time: .*//'
LogGOPSim -f p.bin --compat atlahs -b | sed 's/Time: .*//'
orrery run p.goal --compare loggops,unaware,aware
orrery run p.goal --loggops X=1
orrery run p.goal --network aware --loggops ai
orrery run p.goal --queues 2
orrery run p.goal --compare loggops,nothing
orrery run p.goal --job nowhere.goal
printf 'num_ranks 2\nrank 0 {\na: recv 8b from 1\n}\nrank 1 {\n}\n' > bad.goal
orrery run bad.goal
echo "exit $?"
orrery run bad.goal --compare loggops,unaware
echo "exit $?"
orrery run p.goal --hosts 6 --compare unaware,packet,loggops --json | grep -c finished_ns
orrery run bad.goal --network unaware
echo "exit $?"
orrery run p.goal --compare graph,packet --json | sed 's/[0-9][0-9]*/N/g'
orrery run p.goal --report page.html
orrery run p.goal --compare loggops,aware --csv out.csv
echo "exit $?"
