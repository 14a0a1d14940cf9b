# SPDX-License-Identifier: Apache-2.0
# Devices that are linked in pairs (MI300X: 7 links of 64 GB/s) or in a torus: collectives use all links to members of
# their group, and no others; part of a node keeps the links of the whole one; no dimension is in use above 100 %.
time_of() { # file, machine: ns of a run
    orrery run -q "$1" --machine "$2" --fold verify --json | sed -n 's/^  "simulated_ns": \([0-9]*\),/\1/p'
}
for ranks in 2 4 8 16; do
    orrery gen -q all_reduce --ranks $ranks --comm-size 536870912 -o ar.orr
    run=$(time_of ar.orr mi300x)
    table=$(orrery nccl-tests -m mi300x:$(((ranks + 7) / 8)) -n $ranks -b 512M -e 512M --json | sed -n 's/.*"time_us": \([0-9.]*\).*/\1/p')
    # A ring moves 2 (n - 1) / n of the bytes; between two devices there is one link.
    awk -v n=$ranks -v run="$run" -v table="$table" 'BEGIN {
        bus = 536870912 * 2 * (n - 1) / n / run; links = n < 8 ? n - 1 : 7
        diff = run / 1000 - table
        is_right = bus <= 64 * links && bus >= 0.6 * 64 * links
        printf "%d ranks: %.0f GB/s over links of %d GB/s: %s; nccl-tests %s\n", n, bus, 64 * links, is_right ? "plausible" : "no",
            diff * diff < 1 ? "agrees" : "differs"
    }'
done
# A group of four of eight has three links, whoever else is there.
orrery stage -q llama-3-8b --layers 1 --tp 4 --dp 2 --seq 4096 -o step.orr >/dev/null
orrery run -q step.orr --machine mi300x --json >run.json
awk '/"type": "ALL_GATHER"/ {on = 1} on && /"size_bytes"/ {size = $2 + 0} on && /"count"/ {calls = $2 + 0}
    on && /"duration_ns_total"/ {print "tp 4:", (size * 3 / (($2 + 0) / calls) <= 192 ? "at most 192 GB/s" : "too fast"); exit}' run.json
# Half of a 4 x 4 torus has two dimensions of links of 128 GB/s.
orrery gen -q all_reduce --ranks 8 --comm-size 536870912 -o ar.orr
orrery run -q ar.orr --machine trainium2 --json | grep -E '"(npus|bandwidth_GiBps)"' | head -4
for machine in mi300x trainium2; do
    orrery run -q ar.orr --machine $machine | awk '/^dimension/ {on = 1; next} /^$/ {on = 0}
        on {use = $NF + 0; print (use > 0 && use <= 100 ? "in use: plausible" : "in use: " $NF)}'
done
