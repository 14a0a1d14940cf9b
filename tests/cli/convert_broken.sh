# SPDX-License-Identifier: Apache-2.0
# One damaged file of a set: its name and byte, and no output.
orrery gen -q all_reduce --ranks 3 -o ring
head -c 30 ring.1.et >cut && mv cut ring.1.et
orrery convert et ring -o ring.orr
echo "exit $?"
ls
