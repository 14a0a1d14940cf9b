# SPDX-License-Identifier: Apache-2.0
# Python that ends badly: how it ended is said, temporary files go, nothing is written.
. "$ORR_ROOT/tests/capture/stand_in.sh"
try() {
    orrery capture -q -o step.orr "$@" 2>err
    echo "exit $?"
    cat err
    ls tmp
}
echo 'print(1)' >train.py
stand_in 2.11.0 'echo "orrery_capture: item() at train.py:3: captured tensors have no data" >&2; exit 3'
try train.py
stand_in 2.11.0 'exit 2'
try train.py
stand_in 2.11.0 'exit 41'
try train.py
stand_in 2.11.0 'kill -9 $$'
try train.py
stand_in 2.11.0 'kill -11 $$'
try train.py
stand_in 2.11.0 ':'
try train.py
stand_in 2.11.0 'echo "{\"format\": \"orrery-cap" >"$output"'
try train.py
stand_in 2.11.0 'mkdir -p "$TMPDIR/a/b"; echo x >"$TMPDIR/a/b/c"; exit 3'
try train.py
stand_in 2.11.0 ':'
echo old >old.json # of an earlier run: not what was captured now
try -o old.json train.py
cat old.json
rm old.json
try
try --hardware h200 -o step.json train.py
try --json -o - train.py
try --no-such train.py
stand_in 2.11.0 'echo "Python ran for nothing"; exit 3'
try -n 8 -o - train.py
try -o nowhere/step.orr train.py
try -o nowhere/step.json.gz train.py
ls
