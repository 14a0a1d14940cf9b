# SPDX-License-Identifier: Apache-2.0
# Interrupted while Python runs: all that Python has started ends too, temporary files go, the status is 130.
. "$ORR_ROOT/tests/capture/stand_in.sh"
echo 'print(1)' >train.py
interrupt() {
    stand_in 2.11.0 "$2"
    rm -f ready
    env --default-signal=HUP,TERM orrery capture -q -o step.orr train.py 2>err & # also where HUP is ignored: nohup
    n=0
    until [ -e ready ] || [ $n -gt 400 ]; do sleep 0.1; n=$((n + 1)); done
    kill -s "$1" $!
    [ -z "${3-}" ] || { sleep 0.3; kill -s "$1" $!; }
    wait $!
    echo "exit $?"
    cat err
    ls tmp
}
interrupt TERM 'sleep 60 & echo >ready; wait'
interrupt HUP 'sleep 60 & echo >ready; wait'
# one that does not want to end is killed by the second signal
interrupt TERM 'trap "" TERM; echo >ready; n=0; while [ $n -lt 60 ]; do sleep 1; n=$((n + 1)); done' twice
[ -e step.orr ] || echo "nothing was written"
