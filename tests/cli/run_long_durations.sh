# SPDX-License-Identifier: Apache-2.0
# Durations that no clock holds are refused, not cut to what is left of their bits.
for us in 9000000000000000 9300000000000000 1000000000000000000 9223372036854775807 9223372036854775808 18446744073709551615; do
    printf '{"format": "orrery-trace", "version": 1, "metadata": {"version": "1.0.0"}}\n{"id": "1", "name": "x", "type": "COMP_NODE", "durationMicros": "%s"}\n' $us >long.jsonl
    orrery -q run long.jsonl --machine dgx-h100 2>&1 | head -n 1
done
