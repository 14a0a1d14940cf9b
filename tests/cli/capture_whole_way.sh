# SPDX-License-Identifier: Apache-2.0
# From a script to a simulated run, with a stand-in for Python that gives back what PyTorch captured once: 4-way tensor
# parallel, 2-way data parallel.  Options behind the script are the script's.
. "$ORR_ROOT/tests/capture/stand_in.sh"
stand_in 2.11.0+cu130 'echo "python3 $arguments" | sed "s|${output%/*}|FOLDER|g"
[ -f "${PYTHONPATH%%:*}/orrery_capture.py" ] && echo "the module is there"
echo "from the script"
cp "$ORR_ROOT/tests/capture/graphs/tp.json.gz" "$output"'
echo 'print(1)' >train.py
orrery capture -n 8 --local-size 4 --ranks 0,7 --steps 3 --step 1 --strict --real -o step.orr train.py -o x --steps 9 2>err
echo "exit $?"
cat err
ls tmp
orrery check step.orr
orrery run -q --ideal step.orr -s "$ORR_ROOT/examples/capture/system.json" -t "$ORR_ROOT/examples/capture/ring8.yml" | head -1
orrery capture -q -n 8 -o step.json.gz train.py 2>/dev/null
cmp step.json.gz "$ORR_ROOT/tests/capture/graphs/tp.json.gz" && echo "the step itself"
orrery capture -n 8 --hardware h200 --json -o step.orr train.py 2>/dev/null | sed 's/"captured.*//'
orrery capture -n 8 --json -o step.json.gz train.py 2>/dev/null
