# SPDX-License-Identifier: Apache-2.0
# GB/s is 10^9: a 400 Gb/s NIC is 50 GB/s, in files of our own and in results.  Where a file of ASTRA-sim means GiB/s, text,
# JSON and report say GiB/s.
printf 'generate: {type: switch, ranks: 4, bandwidth: 400Gb/s, latency: 500ns}\n' >gb.yml
printf 'generate: {type: switch, ranks: 4, bandwidth: 50GB/s, latency: 500ns}\n' >gB.yml
printf 'topology: [Switch]\nnpus_count: [4]\nbandwidth: [46.56612873077393]\nlatency: [500]\n' >astra.yml
echo '{"all-reduce-implementation": ["ring"]}' >sys.json
orrery gen -q all_reduce --ranks 4 --comm-size 1073741824 -o a.orr
for net in gb gB astra; do
    orrery -q run a.orr -s sys.json -t $net.yml --json >$net.json
    # 2 x 3/4 x 2^30 bytes at 50 GB/s are 32.2 ms; links of a topology carry headers, 3.6 % and acknowledgements of 4.8 %.
    sed -n 's/.*"simulated_ns": \([0-9]*\).*/\1/p' $net.json |
        awk -v net=$net '{print net, ($1 > 32.2e6 && $1 < 1.15 * 32.2e6 ? "50 GB/s" : $1 " ns")}'
done
grep -o '"bandwidth_Gi*Bps": [0-9.]*' astra.json
orrery -q machine show dgx-h100 | grep -i 'GB/s\|Gb/s' | head -3
grep -rn 'GB/s per link' "$ORR_ROOT"/docs/man "$ORR_ROOT"/cli | head -3
