# SPDX-License-Identifier: Apache-2.0
# However fast a server may be, it is not done before the last request has come: 3 s.
printf 'arrival_us,prompt,output\n0,100,4\n1000000,100,4\n2000000,100,4\n3000000,100,2\n' >requests.csv
for tp in 1 2; do
    orrery -q serve llama-3-8b --machine dgx-h100 --tp $tp -r requests.csv -o $tp.orr >/dev/null
    orrery -q run $tp.orr --machine dgx-h100 --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
low, end = d["interval_ns"][0], d["simulated_ns"]
print("tp '$tp'", "ok" if 3e9 <= low < end <= 3.2e9 else (low, end))'
done
