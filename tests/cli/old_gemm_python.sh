# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# The generator of text workloads as its documents type it: python3 in front, or started by itself; a copy of the file
# finds orrery in PATH.  The folder of run_name is written; quotes in a configuration mean SCALE-Sim v1.
mkdir -p scalesim/configs mnk_inputs
printf '[general]\nrun_name = "t4"\n[architecture_presets]\nArrayHeight: 4\nArrayWidth: 4\nIfmapSramSz: 1\n' >v1.cfg
printf 'FilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\n' >>v1.cfg
sed 's/"//g; s/SramSz/SramSzkB/' v1.cfg >scalesim/configs/google.cfg
printf 'Layer,m,n,k\nA,8,4,4\nB,16,4,4\n' >mnk_inputs/example.csv
cp "$(command -v gen_astrasim_workload_input.py)" .
python3 gen_astrasim_workload_input.py --datatype_size=2 --mnk=mnk_inputs/example.csv --num_npus=2 --num_packages=1 --output_file=example.txt --parallel=DATA --run_name=example --scalesim_config=scalesim/configs/google.cfg --scalesim_path=scalesim
cat example.txt && echo "<"
ls outputs/DATA/example
head -n 2 outputs/DATA/example/*.csv
./gen_astrasim_workload_input.py --mnk=mnk_inputs/example.csv --num_npus=2 --scalesim_config=scalesim/configs/google.cfg --scalesim_path=scalesim
cmp workload.txt example.txt
ls outputs/DATA
python3 gen_astrasim_workload_input.py --mnk=mnk_inputs/example.csv --num_npus=2 --scalesim_config=v1.cfg --run_name=old --scalesim_path=scalesim
cat workload.txt && echo "<"
ls outputs/DATA/old
python3 gen_astrasim_workload_input.py --mnk=mnk_inputs/example.csv --num_npus=2 --scalesim_config=v1.cfg --compat=v2
echo "status $?"
