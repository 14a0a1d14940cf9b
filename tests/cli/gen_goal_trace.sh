# SPDX-License-Identifier: Apache-2.0
# A trace of two ranks; what is left out is told.
cat >t-0.dat <<'END'
# collprof 0.9 output file
MPI_Init:-:1:2:100
MPI_Isend:105:9:100:11,8,8:1:7:0,0,2:640:106
MPI_Wait:107:640:0:108
MPI_Barrier:110:0,0,2:111
MPI_Barrier:112:3,0,1:113
MPI_Ibarrier:114:0,0,2:640:115
MPI_Finalize:120:-
END
sed 's/Isend/Irecv/; s/:1:7:0,0,2/:0:7:0,1,2/' t-0.dat >t-1.dat
orrery gen goal trace --traces t-0.dat -o -
orrery gen goal trace --traces t-0.dat --json -o t.goal
