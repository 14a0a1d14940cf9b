# SPDX-License-Identifier: Apache-2.0
# room: astra_sim, chakra
# The four figures of docs/figures.md, by its commands, with the files that it shows; the table of layers is that of the
# goldens.
python3 - "$ORR_ROOT" <<'PY'
import json, pathlib, re, sys
root = pathlib.Path(sys.argv[1])
page = (root / "docs/figures.md").read_text()
for name, body in re.findall(r"^`(Switch\.\w+)`:\n\n```\w+\n(.*?)```", page, re.M | re.S):
    pathlib.Path(name).write_text(body)
cases = json.loads((root / "tests/golden/astra_sim_cases.json").read_text())
rows = cases["workloads"]["resnet50"]["rows"]
lines = [f"layer{i} -1 {f} NONE 0 {g} NONE 0 {w} ALLREDUCE {size} 0" for i, (f, g, w, size) in enumerate(rows)]
pathlib.Path("Resnet50_DataParallel.txt").write_text("\n".join(["DATA", str(len(rows)), *lines]) + "\n")
commands = re.search(r"^## Commands\n\n```sh\n(.*?)```", page, re.M | re.S)[1]
pathlib.Path("commands.sh").write_text(commands.replace("Switch.yml ", "Switch.yml -q "))
PY
echo '{"memory-type": "NO_MEMORY_EXPANSION"}' > RemoteMemory.json
sh -e commands.sh > out.txt 2>/dev/null
grep '^64 ranks' out.txt
for option in '' --compat=astra2023; do
    chakra_generator -q --num_npus 64
    AstraSim_Analytical_Congestion_Unaware --workload-configuration=./ALL_REDUCE \
        --system-configuration=Switch.json --network-configuration=Switch.yml \
        --remote-memory-configuration=RemoteMemory.json $option | grep 'sys.63. finished' | sed 's/.*sys/sys/'
done
echo "== help, and the figures of its commands"
orrery help figures
orrery help figures | sed -n 's/^  \$ //p' >help.sh
sh -e help.sh 2>/dev/null | grep '^64 ranks'
echo "== refused"
orrery run ar.orr -s Switch.json -t Switch.yml --compat astra2023 --compare unaware,aware 2>&1
orrery run ar.orr -n loggops --compat astra2023 2>&1
AstraSim_Analytical_Congestion_Unaware --workload-configuration=x --system-configuration=Switch.json \
    --network-configuration=Switch.yml --remote-memory-configuration=RemoteMemory.json --compat=2023 2>&1
exit 0
