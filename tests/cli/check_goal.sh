# SPDX-License-Identifier: Apache-2.0
# A schedule that is good, and one with a message that nobody receives.
printf 'num_ranks 2\nrank 0 {\nsend 8b to 1 tag 3\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n' > good.goal
orrery check good.goal
sed s/recv.*/'calc 1'/ good.goal > bad.goal
orrery check bad.goal --json
orrery check bad.goal
