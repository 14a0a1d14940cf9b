#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_graphs.sh - makes the captured graphs of tests/capture/graphs anew, on a machine with PyTorch 2.4 or later.
#
#     tests/capture/make_graphs.sh FOLDER
#
# Graphs are captured as on a machine without a GPU (that is the claim to be tested); where there is a GPU, one more is
# captured with it and the tables of measured operators (*.csv) are made, too.
set -eu
out=${1:?a folder to write to}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
examples=$here/../../examples/capture
PYTHONPATH=$here/../../capture:$examples
export PYTHONPATH
cd "$examples"

without_gpu() { CUDA_VISIBLE_DEVICES= python3 "$@"; }

without_gpu module.py "$out/tiny.json.gz" tiny 2 128
without_gpu module.py "$out/gpt2_124m.json.gz" gpt2_124m 8 1024
without_gpu module.py "$out/llama_tiny.json.gz" llama_tiny 2 128
without_gpu module.py "$out/llama_1b.json.gz" llama_1b 2 4096
for kind in ddp fsdp tp_dp pipeline; do
    case $kind in tp_dp) name=tp ;; pipeline) name=pp ;; *) name=$kind ;; esac
    without_gpu -m orrery_capture --world-size 8 -o "$out/$name.json.gz" train_$kind.py
done
without_gpu export.py "$out/tiny.pt2"
python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || exit 0
python3 module.py "$out/tiny_gpu.json.gz" tiny 2 128
for row in "tiny 2 128" "gpt2_124m 8 1024" "llama_tiny 2 128" "llama_1b 2 4096"; do
    # shellcheck disable=SC2086
    python3 "$here/measure.py" $row >"$out/${row%% *}.csv"
done
