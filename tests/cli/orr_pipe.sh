# SPDX-License-Identifier: Apache-2.0
# A set of all ranks arrives through a pipe, packed or not, as it does from a file.
orrery gen -q all_reduce --ranks 8 -o a.orr
orrery info --json a.orr | grep -v '"input"' >want
cat a.orr | orrery info --json - | grep -v '"input"' | diff want -
gzip -c a.orr | orrery info --json - | grep -v '"input"' | diff want -
cat a.orr | orrery check -
cat a.orr | head -c 100 | orrery check -
