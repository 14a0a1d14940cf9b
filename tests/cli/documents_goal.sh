# SPDX-License-Identifier: Apache-2.0
# room: loggopsim, schedgen
# LogGOPSim's and ATLAHS' documents, line by line; for DrawViz and merge_goals.py what takes their place.
echo "-- README: simple usage example"
schedgen --commsize 20 --datasize 1024 --ptrn binomialtreereduce -o example.goal
txt2bin -i example.goal -o example.bin
LogGOPSim -f example.bin | sed 's/Time: .*//'
echo "-- doc/README: running"
schedgen -p dissemination -s 16 -o dissemination_16.goal
txt2bin -i dissemination_16.goal -o dissemination_16.bin
LogGOPSim -f dissemination_16.bin | grep -c 22000
echo "-- doc/README: visualization"
LogGOPSim -f dissemination_16.bin -V viz.out | head -n 1
sed -n 1,2p viz.out
orrery run -q dissemination_16.goal --timeline viz.json >out && orrery view timeline viz.json --text --ascii --ranks 0-1 --width 60 | head -n 4
echo "-- doc/README: matching"
LogGOPSim -f dissemination_16.bin --qstat mpi-matching | head -n 1
ls mpi-matching*
echo "-- doc/README: schedgen"
schedgen -p binomialtreebcast -s 32 -o binary_tree_32.goal
mkdir sweep3d-2x2
for rank in 0 1 2 3; do
    printf '# collprof 0.9 output file\nMPI_Init:-:1:2:100\nMPI_Barrier:110:0,%d,4:111\nMPI_Finalize:120:-\n' $rank \
        >sweep3d-2x2/pmpi-trace-rank-$rank.txt
done
schedgen -p trace --traces sweep3d-2x2/pmpi-trace-rank-0.txt -o sweep-4.goal
txt2bin -i sweep-4.goal -o sweep-4.bin
LogGOPSim -f sweep-4.bin | grep Host
echo "-- ATLAHS: gen_traces.sh"
mkdir traces
schedgen -p linear_alltoall -d 16 -s 16 -o traces/linear_alltoall_16_16.goal
schedgen -p linear_alltoallv -d 16 -s 16 --a2av-skew-ratio 10 -o traces/linear_alltoallv_16_16_10.goal
schedgen -p linear_alltoallv -d 16 -s 16 --a2av-skew-ratio 10 --outcast -o traces/linear_alltoallv_16_16_10_outcast.goal
schedgen -p allreduce_recdoub -d 128 -s 16 -o traces/allreduce_recdoub_16_128.goal
schedgen -p allreduce_recdoub -d 128 -s 16 --rpl-dep-cmp 100 -o traces/allreduce_recdoub_16_128_100.goal
schedgen -p allreduce_ring -d 128 -s 16 -o traces/allreduce_ring_16_128.goal
ls traces
echo "-- ATLAHS: merge_goals.py, mode multi-job, patterns packed, round-robin and of one's own"
for placement in packed spread; do
    orrery run -q dissemination_16.goal --job example.goal --placement $placement | head -n 1
done
