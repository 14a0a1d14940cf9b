# SPDX-License-Identifier: Apache-2.0
# Figures of a saved run that no run can have are not known; they do not become others.
cat >absurd.json <<'END'
{"format":"orrery-run","ranks":4,"simulated_ns":1e300,"events":-1e300,"serving":{"requests":1e30}}
END
orrery report absurd.json --json | python3 -c '
import json, sys
head = json.load(sys.stdin)["runs"][0]["headline"]
print(head["time_ns"], head["ranks"], head["events"])'
