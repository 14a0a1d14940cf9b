# SPDX-License-Identifier: Apache-2.0
# room: drawing
# All ranks in one drawing: a frame each, and an arrow from each send to its receive (rank r sends to r + 1).
orrery -q gen send_recv_ring --ranks 3 -o ring.orr
orrery view dot ring.orr --cluster rank | grep 'label="rank\|->'
orrery -q gen send_recv_ring --ranks 3 -o ring
orrery view dot ring --cluster rank >files.dot # from files, too
orrery view dot ring.orr --cluster rank | cmp - files.dot
# Stages of a model with holes: three boundaries, two micro-batches, both ways: twelve arrows between frames.
cat >cross.py <<'END'
import collections, re, sys
frame, of, crossing = None, {}, collections.Counter()
for line in sys.stdin:
    if "label=\"rank" in line:
        frame = line.split('"')[1]
    box = re.match(r"\tb(\d+) \[", line)
    if box:
        of[box[1]] = frame
    link = re.match(r"\tb(\d+) -> b(\d+)", line)
    if link and of[link[1]] != of[link[2]]:
        crossing[of[link[1]] + " to " + of[link[2]][5:]] += 1
print(sorted(crossing.items()))
END
orrery -q stage llama-3-8b --pp 4 --batch 2 -o stage.orr >/dev/null
orrery view dot stage.orr --cluster rank --limit 1000000 2>/dev/null | python3 cross.py
orrery view svg stage.orr --cluster rank -o stage.svg 2>&1
grep -c '>rank [0-3]<' stage.svg
for bad in "--rank 1" "--around 3" "--compat"; do
    orrery view dot ring.orr --cluster rank $bad
    echo "status $?"
done
orrery view graphml ring.orr --cluster rank
echo "status $?"
