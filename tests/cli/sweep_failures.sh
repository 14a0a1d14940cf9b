# SPDX-License-Identifier: Apache-2.0
# Points that fail: refused by the command, or too slow.  The others are computed. room: nsight
cat >f.yaml <<'X'
command: chip
arguments: [time, "{chip}", gemm bf16 m=64 n=64 k=64]
variables: {chip: [h100, no-such-chip, a100]}
X
orrery -q sweep f.yaml -j 2
orrery sweep status f.db | sed 1d
orrery sweep export csv f.db --failed --columns chip
orrery -q sweep f.yaml --retry
# A refused point is known; a changed input file is another point.
orrery -q sweep f.yaml
printf 'Layer,m,n,k\na,64,64,64\n' >shapes.csv
printf 'command: gemm\noptions: {shapes: shapes.csv}\naxes: {npus: [1, 2]}\n' >g.yaml
orrery -q sweep g.yaml
orrery -q sweep g.yaml
printf 'b,64,64,64\n' >>shapes.csv
orrery -q sweep g.yaml
# The machine file of 'mine.yml:2' counts with its content, too.
printf 'base: dgx-h100\nname: mine\n' >mine.yml
printf 'command: machine show\naxes: {machine: [mine.yml, "mine.yml:2", "mine.yml:2,watts=1"]}\n' >m.yaml
orrery -q sweep m.yaml
orrery -q sweep m.yaml
printf 'nics: {bandwidth: 800Gb/s}\n' >>mine.yml
orrery -q sweep m.yaml
orrery sweep show m.db --columns machine,nic_GBps,watts
