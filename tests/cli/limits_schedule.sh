# SPDX-License-Identifier: Apache-2.0
# Limits also hold while traces become a schedule; events are those of the schedule.
orrery -q stage gpt2 --dp 4 --layers 2 --batch 8 -o a.orr >/dev/null
printf 'num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n' >p.goal
t() { orrery -q run a.orr "$@" >out 2>err; echo "status $?, $(wc -l <out) lines"; cat err; }
t -n loggops --max-memory 1KiB
t --job p.goal --max-memory 1KiB
t --compare loggops --max-memory 1KiB
t -n loggops --hardware h100 --max-events 5 | sed 's/, [0-9]* lines/, a table/'
t -n loggops --hardware h100 --max-memory 64GiB --max-time 10min | sed 's/, [0-9]* lines/, a table/'
