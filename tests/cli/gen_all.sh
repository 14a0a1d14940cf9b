# SPDX-License-Identifier: Apache-2.0
orrery gen all --ranks 1 -o here 2>notes
grep 'left out' notes
ls here | wc -l
orrery gen all --ranks 2 --json -o here | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["made"]))'
ls here | wc -l
orrery gen all --schema eg -o there
