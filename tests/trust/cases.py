# SPDX-License-Identifier: Apache-2.0
"""Every command on small inputs of its own: what test_faults lets fail, and test_mutated changes."""

import os
import pathlib
import shutil
import subprocess

import work

SWEEP = "printf 'command: stage, run\\noptions: {model: gpt2, layers: 1, batch: 2, machine: dgx-a100}\\naxes: {tp: [1, 2]}\\n' >s.yaml"
SWEPT = SWEEP + "; orrery sweep -q -j 1 s.yaml"

GOAL = "printf 'num_ranks 2\\nrank 0 {\\nl1: calc 100\\nl2: send 8b to 1 tag 0\\nl2 requires l1\\n}\\nrank 1 {\\nl1: recv 8b from 0 tag 0\\n}\\n' >a.goal"

# One layer: a plan of gpt2 allocates four times as often, for more of the same.
SMALL = """echo '{"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 2, "vocab_size": 128, "n_positions": 64}' >m.json"""

# name: (preparation, command, outputs).  Everything in one folder; every command writes what it can.
CASES = {
    "gen": ("", "orrery gen -q layered --nodes 40 -o out.et", ["out.et"]),
    "gen orr": ("", "orrery gen -q three_layer_data_parallel -n 4 -z -o out.orr", ["out.orr"]),
    "gen files": ("", "orrery gen -q three_layer_data_parallel -n 4 -o out", [f"out.{rank}.et" for rank in range(4)]),
    "info": ("", "orrery info step --json", []),
    "check": ("", "orrery check step --json", []),
    "check fix": ("orrery gen -q layered --nodes 20 -o bad.et", "orrery check -q --fix -o out.et bad.et", ["out.et"]),
    "convert": ("", "orrery convert -q step.orr -o out.orr", ["out.orr"]),
    "convert gz": ("orrery view json step.0.et -o step.json.gz", "orrery convert -q et step.json.gz -o out.et", ["out.et"]),
    "view json": ("", "orrery view -q json step.0.et -o out.json.zst", ["out.json.zst"]),
    "view dot": ("", "orrery view -q dot step.0.et -o out.dot", ["out.dot"]),
    "feed": ("", "orrery feed step.0.et", []),
    "link": ("python3 $ORR_ROOT/tests/golden/torch_inputs.py plain .", "orrery link -q host.json device.json -o out.et",
             ["out.et"]),
    "run fluid": ("", "orrery run -q step -s sys.json -t net.yml --json --csv out.csv --timeline out.json --links out.links "
                      "--report out.html --critical-path", ["out.csv", "out.json", "out.links", "out.html"]),
    "run aware": ("", "orrery run -q step -s sys.json -t net.yml -n aware --fold off --csv out.csv --trace-log out.log",
                  ["out.csv", "out.log"]),
    "run packet": ("", "orrery run -q step -s sys.json -t leaf.yml -n packet --threads 2 --csv out.csv", ["out.csv"]),
    "run loggops": ("", "orrery run -q step -n loggops --threads 1 --json", []),
    "run limits": ("", "orrery run -q step -s sys.json -t net.yml --max-time 1h --max-memory 64GiB", []),
    "run machine": ("", "orrery run -q step --machine dgx-h100 --json", []),
    "diff": ("orrery run -q step -s sys.json -t net.yml --timeline a.json; orrery run -q step -s sys.json -t slow.yml --timeline b.json",
             "orrery diff a.json b.json", []),
    "report": ("orrery run -q step -s sys.json -t net.yml --timeline a.json", "orrery report -q a.json -o out.html", ["out.html"]),
    "gemm": ("", "orrery gemm -e dlrm -n 4 -q -o out.orr", ["out.orr"]),
    "scalesim": ("", "orrery -q scalesim -c a.cfg -t layers.csv --csv", []),
    "serve": ("", "orrery serve -q llama-3-8b --tp 2 -b 2 -p 64 -n 2 -o out.orr", ["out.orr"]),
    "stage": ("", "orrery stage -q llama-3-8b --tp 2 --layers 2 -o out.orr", ["out.orr"]),
    "stage order": ("printf '0: F0 F1 B0 F2 B1 B2\\n1: F0 B0 F1 B1 F2 B2\\n' >order.txt",
                    "orrery stage -q gpt2 --pp 2 --batch 3 --layers 2 --order order.txt -o out.orr", ["out.orr"]),
    "model": ("", "orrery model llama-3-8b --json", []),
    "machine": ("", "orrery machine show dgx-h100 --json", []),
    "chip": ("", "orrery chip time h200 'gemm bf16 m=512 n=512 k=512' --json", []),
    "chip text": ("echo 'gemm bf16 m=512 n=512 k=512' >kernels.txt", "orrery chip time h200 --from kernels.txt", []),
    "nccl-tests": ("", "orrery nccl-tests --machine dgx-h100 -b 1K -e 1M -f 32", []),
    "calibrate": ("orrery nccl-tests --machine dgx-h100 -b 8K -e 64M -f 2 >measured.txt",
                  "orrery calibrate nccl measured.txt --machine dgx-h100 -o out.yml --plot out.svg",
                  ["out.yml", "out.collectives.yml", "out.svg"]),
    "calibrate kernels": ("printf 'kernel,us\\nnorm bf16 m=4096 n=4096 rms,24.8\\nnorm bf16 m=8192 n=4096 rms,46\\n"
                          "norm bf16 m=8192 n=8192 rms,89\\n' >measured.csv",
                          "orrery calibrate kernels measured.csv --like h200 -o out.yml", ["out.yml"]),
    "plan": (SMALL, "orrery plan -q m.json --machine dgx-h100 --devices 2 --batch 2 --seq 64 --fix micro-batch=1,zero=0 --threads 1 "
                 "--csv out.csv --report out.html", ["out.csv", "out.html"]),
    "plan serve": ("", "orrery plan -q gpt2 --serve --machine dgx-h100 --devices 2 --prompt 8 --output 2 --threads 1 --json "
                       "--report out.html", ["out.html"]),
    "sweep dry": (SWEEP, "orrery sweep --dry-run s.yaml", []),
    "sweep show": (SWEPT, "orrery sweep show s.db", []),
    "sweep export": (SWEPT, "orrery sweep export -q csv s.db -o out.csv", ["out.csv"]),
    "sweep plot": (SWEPT, "orrery sweep plot -q s.db --x tp --y simulated_ns -o out.svg", ["out.svg"]),
    "sweep report": (SWEPT, "orrery sweep report -q s.db -o out.html", ["out.html"]),
    "help": ("", "orrery help run", []),
    "demo": ("", "orrery demo -q -o out", []),
    "gen goal": ("", "orrery gen goal -q allreduce_ring -n 4 --datasize 64 -o out.goal", ["out.goal"]),
    "gen topology": ("", "orrery gen topology -q leaf-spine --hosts 8 --hosts-per-leaf 4 --spines 2 --nic 400Gbps -o out.txt",
                     ["out.txt"]),
    "convert text": ("printf 'DATA\\n1\\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1\\n' >text.txt",
                     "orrery convert -q text text.txt --npus 4 -o out.orr", ["out.orr"]),
    "convert simai": ("printf 'HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4\\n1\\n"
                      "a -1 100 NONE 0 100 NONE 0 100 NONE 0 100\\n' >simai.txt",
                      "orrery convert -q simai simai.txt -o out.orr", ["out.orr"]),
    "convert goal": (GOAL, "orrery convert -q goal a.goal -o out.orr", ["out.orr"]),
    "convert pytorch": ("python3 $ORR_ROOT/tests/golden/torch_inputs.py plain .; orrery link -q host.json device.json -o linked.json",
                        "orrery convert -q pytorch linked.json -o out.et", ["out.et"]),
    "capture": ("", "orrery capture --print-module", []),
    "calibrate steps": ("printf '900\\n850\\n220\\n200\\n210\\n205\\n215\\n' >steps.txt",
                        "orrery calibrate steps steps.txt --predicted 200 --like h200 -o out.yml --plot out.svg", ["out.yml", "out.svg"]),
    "calibrate plot": ("printf 'kernel,us\\nnorm bf16 m=4096 n=4096 rms,24.8\\nnorm bf16 m=8192 n=4096 rms,46\\n"
                       "norm bf16 m=8192 n=8192 rms,89\\n' >measured.csv",
                       "orrery calibrate kernels measured.csv --like h200 --plot out.svg", ["out.svg"]),
    "view timeline": ("orrery run -q step -s sys.json -t net.yml --timeline a.json", "orrery view -q timeline a.json -o out.svg",
                      ["out.svg"]),
    "sweep": (SWEEP, "orrery sweep -q -j 1 s.yaml -o out.db", []),
    "machine export": ("", "orrery machine export dgx-h100:2 -o out", []),
    "run flows": ("printf '2\\n0 1 3 100 4000 0\\n1 0 3 100 4000 0\\n' >flows.txt",
                  "orrery run -q --flows flows.txt -t leaf.yml --json", []),
    "run graph": ("", "orrery run -q step -s sys.json -t leaf.yml -n graph --csv out.csv --links out.links", ["out.csv", "out.links"]),
    "run threads": ("", "orrery run -q step -s sys.json -t net.yml -n unaware --fold off --threads 2 --csv out.csv --json", ["out.csv"]),
    "run goal": (GOAL, "orrery run -q a.goal -n loggops --json", []),
    "run compare": ("", "orrery run -q step -s sys.json -t net.yml --compare fluid,aware", []),
    "report set": ("", "orrery report -q step.orr -s sys.json -t net.yml -o out.html", ["out.html"]),
    "report two": ("orrery run -q step -s sys.json -t net.yml --timeline a.json; orrery run -q step -s sys.json -t slow.yml --timeline b.json",
                   "orrery report -q a.json b.json -o out.html", ["out.html"]),
    "plan check": (SMALL, "orrery plan -q m.json --machine dgx-h100 --devices 2 --batch 2 --seq 64 --fix micro-batch=1,zero=0,tp=1 "
                       "--threads 1 --check --json", []),
}
MAKE_NSYS = pathlib.Path(os.environ.get("ORR_BUILD", "build")).resolve() / "tests" / "unit" / "make_nsys"
if MAKE_NSYS.exists():  # where the build reads exports of Nsight
    CASES["nccl"] = (f"{MAKE_NSYS} traces rounds=4 table=t.json", "orrery nccl -q traces -s t.json -o out.goal", ["out.goal"])
# Graphviz and the libraries below it end the process when memory or threads run out: drawings are tried with the other
# faults only.
DRAWING = {"view svg": ("", "orrery view -q svg step.0.et -o out.svg", ["out.svg"])}


def prepare(folder, before):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    work.write_json(folder / "sys.json", work.SYSTEM)
    work.write_network(folder / "net.yml")
    work.write_network(folder / "slow.yml", bandwidth=10)
    (folder / "leaf.yml").write_text("generate: {type: leaf-spine, ranks: 4, spines: 2, ranks_per_leaf: 2, bandwidth: 400Gb/s}\n")
    (folder / "layers.csv").write_text("Layer, M, N, K,\na, 64, 32, 16,\nb, 8, 8, 8,\n")
    (folder / "a.cfg").write_text(
        "[general]\nrun_name = a\n\n[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSzkB: 1\nFilterSramSzkB: 1\n"
        "OfmapSramSzkB: 1\nIfmapOffset: 0\nFilterOffset: 10000000\nOfmapOffset: 20000000\nDataflow: ws\nBandwidth: 10\n"
        "MemoryBanks: 1\n\n[run_presets]\nInterfaceBandwidth: CALC\n")
    subprocess.run(["bash", "-c", "orrery gen -q three_layer_data_parallel -n 4 -o step && orrery gen -q three_layer_data_parallel -n 4 -o step.orr; " + before],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
