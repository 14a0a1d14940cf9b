# SPDX-License-Identifier: Apache-2.0
# run --flows --report.  Two flows of 500 packets into one host, 100 Gb/s and 1 us a link: a packet takes 82.88 ns, so the
# link to host 2 is busy from 1.08288 to 83.96288 us.  192 columns of 100 ns reach to 19.2 us, so they become 0.8 us wide; the
# second one is busy for 1.6 - 1.08288 us, 0.6464 of it.  Up to 2.4 us 16 pairs of packets have come, of each of which one has to
# wait: 16,576 bytes.  The last packet is there at 84.96288 us, its acknowledgement of 48 bytes two times 1 us and 3.84 ns later,
# at 86.97056 us: in column 109.  Alone it would have been 46.08 us (fct.txt): 1.887381 times.
cat >look.py <<'END'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
run = json.loads(re.search(r'id="orrery-data">(.*?)</script>', page, re.S)[1])["runs"][0]
for path in sys.argv[2:]:
    value = run
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    print(path, json.dumps(value))
assert page.startswith("<!DOCTYPE html>") and "http://" not in page.replace("http://www.w3.org/", "")
END
printf '4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n' >topology.txt
printf '2\n0 2 3 100 500000 0\n1 2 3 100 500000 0\n' >flow.txt
cat >config.txt <<'END'
TOPOLOGY_FILE topology.txt FLOW_FILE flow.txt CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps
FCT_OUTPUT_FILE fct.txt PFC_OUTPUT_FILE pfc.txt L2_CHUNK_SIZE 4000 L2_ACK_INTERVAL 1 HAS_WIN 0
END
orrery -q run --flows -t config.txt --json >plain.json
cp fct.txt plain.txt
orrery -q run --flows -t config.txt --report flows.html --json | cmp - plain.json
cmp fct.txt plain.txt && echo "the same flows"
python3 look.py flows.html kind headline.time_ns headline.ranks timeline inputs.1.path fabric.column_ns fabric.columns \
    fabric.links.rows.0.name fabric.links.rows.0.busy_ns fabric.links.rows.0.values.0 fabric.links.rows.0.values.1 \
    fabric.links.rows.0.values.2 fabric.links.left_out fabric.queues.rows.0.values.2 fabric.queues.rows.0.longest_queue_bytes \
    fabric.pauses fabric.flow_times.all.flows fabric.flow_times.by_size.0.above_bytes fabric.flow_times.all.slowdown_max
for threads in 1 3; do
    orrery -q run --flows -t config.txt --threads $threads --report $threads.html >/dev/null
    sed "s/--threads $threads --report $threads.html//" $threads.html | cksum
done | uniq | wc -l
# A network that stands still has its page, too: nothing sends again what is lost.  The last of 1,000 packets of 83 ns each
# would have come after 83 + 83000 + 2000 ns.
printf '4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 1\n' >topology.txt
orrery -q run --flows -t config.txt --compat ns3 --report stall.html >/dev/null 2>&1
echo "status $?"
python3 look.py stall.html stall.title fabric.figures.flows_done fabric.flow_times
# Time that is passed over is not recorded; figures are there.
printf '2 0 1\n\n0 1 100Gbps 1us 0\n' >topology.txt
printf '1\n0 1 3 100 5000000 0\n' >flow.txt
orrery -q run --flows -t config.txt --approx --report approx.html >/dev/null
python3 look.py approx.html fabric.column_ns fabric.links.rows.0.values fabric.links.rows.0.bytes
# What is asked of the same run with something faster leaves the files of the run alone.
printf 'generate: {type: leaf-spine, ranks: 4, ranks_per_leaf: 2, spines: 1, bandwidth: 100Gb/s, latency: 500ns}' >net.yml
printf '{"scheduling-policy":"LIFO","local-mem-bw":1600,"preferred-dataset-splits":1,"all-reduce-implementation":["ring"]}' >sys.json
orrery -q gen all_reduce --ranks 4 --comm-size 1048576 -o ar.orr
orrery -q run ar.orr -s sys.json -t net.yml --network packet --series plain.csv >/dev/null
orrery -q run ar.orr -s sys.json -t net.yml --network packet --series asked.csv --what-if simulate --report ar.html >/dev/null
cmp plain.csv asked.csv && echo "the same series"
python3 look.py ar.html kind headline.ranks fabric.figures.flows what_if.0.change topology.nodes.0
orrery run --flows -t config.txt --report-ranks 1 --report no.html 2>&1
orrery run --flows -t config.txt --what-if off --report no.html 2>&1
orrery run --flows -t missing.txt --report no.html 2>&1
[ ! -e no.html ] && echo "nothing was written"
for input in config.txt topology.txt flow.txt; do
    cp $input before
    orrery run --flows -t config.txt --report $input 2>&1
    echo "status $?"
    cmp $input before
done
