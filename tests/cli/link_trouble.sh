# SPDX-License-Identifier: Apache-2.0
# Bad input: errors with a place, or counted; --strict makes the first trouble an error; nothing is written then.
python3 "$ORR_ROOT/tests/golden/torch_inputs.py" orphans . || exit 1
try() {
    orrery link "$@" -o out.et
    echo "status $?: $(ls out.et 2>/dev/null)"
    rm -f out.et
}
try host.json device.json
try --strict host.json device.json
sed 's/"dur": \([0-9]*\), "args": {"External id": 103/"dur": -\1, "args": {"External id": 103/' device.json > negative.json
try host.json negative.json
sed 's/"ts": [0-9]*, //' device.json > without_ts.json
try host.json without_ts.json
sed 's/1.1.1-chakra.0.0.4/9.9.9/' host.json > newer.json
try newer.json device.json
sed 's/aten::/other::/g; s/Backward0/B/g; s/record_param/q/g; s/c10d::/d::/g; s/Optimizer/O/g' host.json > other_run.json
try other_run.json device.json
sed 's/"id": 2, "name"/"id": 3, "name"/' host.json > same_id.json
try same_id.json device.json
sed 's/"correlation": 3}/"correlation": 2}/' device.json > same_correlation.json
try host.json same_correlation.json
head -c 3000 device.json > cut.json
try host.json cut.json
head -c 3000 host.json > cut_host.json
try cut_host.json device.json
echo "hello" > words.txt
try host.json words.txt
try host.json missing.json
