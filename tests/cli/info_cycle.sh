# SPDX-License-Identifier: Apache-2.0
# No critical path, but everything else.
cat >cycle.jsonl <<END
{"id": "1", "name": "a", "type": "COMP_NODE", "dataDeps": ["2"], "durationMicros": "5"}
{"id": "2", "name": "b", "type": "COMP_NODE", "dataDeps": ["1"], "durationMicros": "6"}
END
orrery info cycle.jsonl | sed "s/read by orrery .*/read by orrery/"
