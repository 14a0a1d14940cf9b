# SPDX-License-Identifier: Apache-2.0
# A page does not depend on how long its run took: one that is stopped for some seconds tries the same changes.
orrery -q gen all_reduce --ranks 8 --comm-size 6000000 -o ar.orr
echo '{"scheduling-policy": "LIFO", "all-reduce-implementation": ["ring"]}' >sys.json
echo 'generate: {type: leaf-spine, ranks: 8, spines: 2, ranks_per_leaf: 4, bandwidth: 400Gb/s}' >leaf.yml
run() { exec orrery -q run ar.orr -s sys.json -t leaf.yml --network packet --report page.html >/dev/null; }
(run)
mv page.html steady.html
run &
for _ in 1 2 3; do
    sleep 0.02
    kill -STOP $! 2>/dev/null || break
    sleep 1.5
    kill -CONT $!
done
wait $!
grep -c 'Of the changes tried\|None of the changes tried' steady.html
cmp page.html steady.html && echo same
