# SPDX-License-Identifier: Apache-2.0
# A schedule that comes through a pipe is read once: nobody looks into it before.  By hand: o + L + 99 G + o = 6094 ns.
mkfifo pipe
printf 'num_ranks 2\nrank 0 {\nl1: send 100b to 1 tag 1\n}\nrank 1 {\nl1: recv 100b from 0 tag 1\n}\n' >file
cat file >pipe &
orrery run pipe | tail -n +2
wait
orrery run - <file | tail -n 1
orrery run file | tail -n 1
