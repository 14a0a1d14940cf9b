# SPDX-License-Identifier: Apache-2.0
# A table of layers: as a set, as files, as JSON lines; clean under check; what was written as JSON.
cat >mlp.txt <<'END'
# two layers, model parallel in dimension 0
HYBRID_DATA_MODEL
2

fc0	-1	10	ALLGATHER	64	20	REDUCESCATTER	128	30	ALLREDUCE	256	5
fc1	-1	11	NONE	0	21	REDUCESCATTER	128	31	NONE	0	5
END
orrery convert text mlp.txt --npus 4 --dims 2 -o mlp.orr
orrery check mlp.orr
orrery convert text mlp.txt --dims 2x2 --passes 2 -o mlp --json
orrery convert text mlp.txt --npus 1 --dims 2 --updates -o mlp.jsonl
grep -v format mlp.jsonl
orrery convert text - --npus 1 --compat -o - -q <mlp.txt
echo "exit $?"
sed -i '/^#/d; /^$/d' mlp.txt
orrery convert text - --npus 1 --compat -o - -q <mlp.txt | orrery view json - --format jsonl | grep -c COMM_COLL_NODE_fc
ls
