# SPDX-License-Identifier: Apache-2.0
# Damage in JSON is named with line and column.
printf '{"metadata": {}}\n{"id": "1"}\n{"id": "2", "dataDeps": ["one"]}\n' >bad.jsonl
orrery view json bad.jsonl
