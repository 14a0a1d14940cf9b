# SPDX-License-Identifier: Apache-2.0
# room: scale_sim
# A folder that cannot be made is refused before the work: the configuration is not there.
echo a file >sys.json
try() {
    echo "\$ orrery $*"
    orrery -q "$@" 2>&1 </dev/null | head -1
}
try scalesim -c none.cfg -t none.csv -o nowhere/x
try scalesim -c none.cfg -t none.csv -o sys.json
