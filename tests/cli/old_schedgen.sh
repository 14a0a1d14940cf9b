# SPDX-License-Identifier: Apache-2.0
# room: schedgen
# schedgen's own words on stdout; what is mended is told on stderr.
schedgen
schedgen --ptrn resnet --comms 2 -o r.goal
schedgen -p resnet152 -s 2 --compat atlahs -o a.goal
schedgen -p chained_dissem -s 4 -o c.goal
schedgen -p chained_dissem -s 4 -o k.goal --keep-invalid
grep -c 9999999 c.goal k.goal
printf 'MPI_Init:-:1:2:100\nMPI_Bcast:105:9:12:13,1,1:0:64,0,1:106\nMPI_Finalize:108:-\n' >t-0.dat
schedgen -p trace --traces t-0.dat --traces-print 1 -o t.goal
cat t.goal
schedgen -V
ls
