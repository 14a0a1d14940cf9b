# SPDX-License-Identifier: Apache-2.0
# Nothing to run the script with: what was tried, what it answered, what to do.  Nothing is written.
. "$ORR_ROOT/tests/capture/stand_in.sh"
try() {
    orrery capture -o step.orr "$@" 2>err
    echo "exit $?"
    cat err
}
echo 'print(1)' >train.py
try train.py
try --python /none/python3 train.py
try --python ./train.py train.py
stand_in none ''
try train.py
stand_in 1.13.1 '' # Debian 12's python3-torch
try train.py
stand_in 2.3.1+cu121 ''
try train.py
stand_in broken ''
try train.py
stand_in '' ''
try train.py
printf '#!/bin/sh\necho "pyenv: version 3.99 is not installed" >&2\nexit 1\n' >bin/python3
try train.py
printf '#!/bin/sh\nexit 5\n' >bin/python3
try train.py
printf '#!/bin/sh\nkill -9 $$\n' >bin/python3
try train.py
printf '#!/none/interpreter\n' >bin/python3
try train.py
printf '#!/bin/sh\necho "orrery-python 2.7.18"\necho "orrery-torch none"\n' >bin/python3
try train.py
# python3 without PyTorch, python with it
stand_in 2.6.0 'cp "$ORR_ROOT/tests/capture/graphs/tp.json.gz" "$output"'
cp bin/python3 bin/python
stand_in none ''
orrery capture -n 8 -o found.orr train.py 2>&1 | head -1
ls tmp
ls *.orr
