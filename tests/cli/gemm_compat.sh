# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# What the old generator wrote, and its own name: the same bytes; intermediate files on request; our own figures with
# --no-compat and with a SCALE-Sim configuration alone.
printf '[general]\nrun_name = "t4"\n[architecture_presets]\nArrayHeight: 4\nArrayWidth: 4\nIfmapSramSz: 1\n' >v1.cfg
printf 'FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\n' >>v1.cfg
sed 's/"//g; s/SramSz/SramSzkB/' v1.cfg >v2.cfg
printf 'Layer,m,n,k\nA,8,4,4\nA,16,4,4\n' >mnk.csv
orrery gemm mnk.csv -n 2 --compat v1 --config v1.cfg -q && echo "<"
orrery gemm mnk.csv -n 2 --compat v2 --config v2.cfg -q && echo "<"
gen_astrasim_workload_input.py -mnk=mnk.csv --num_npus 2 --scalesim_config=v1.cfg --compat=v1 -keep-intermediate
orrery gemm mnk.csv -n 2 --compat v1 --config v1.cfg -q | cmp - workload.txt
ls outputs/DATA/test
cat outputs/DATA/test/mnk_weight_grad.csv
gen_astrasim_workload_input -mnk mnk.csv -num_npus=2 -scalesim_config v2.cfg --output_file=v2.txt --run_name run --keep-intermediate
orrery gemm mnk.csv -n 2 --compat v2 --config v2.cfg -q | cmp - v2.txt
ls outputs/DATA/run
gen_astrasim_workload_input --mnk mnk.csv --num_npus 2 --scalesim_config v2.cfg --no-compat --output_file -
orrery gemm mnk.csv -n 2 --config v2.cfg -q
