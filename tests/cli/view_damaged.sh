# SPDX-License-Identifier: Apache-2.0
# A node of type 42: the place of the byte, and nothing written.
printf '\7\12\0051.0.0\7\10\1\22\1x\30\52' >odd.et
orrery view json odd.et -o out.json
echo "exit $?"
ls out.json 2>&1
orrery view json odd.et --lenient -f jsonl
