# SPDX-License-Identifier: Apache-2.0
# room: chakra, drawing
# A trace shaped as recorded ones are, 816 nodes under one process: drawn in seconds, and it says what is missing.
cat > make.py <<'END'
import json
print(json.dumps({"version": "1.0.0"}))
for i in range(816):
    parents = {"ctrl_deps": [0 if i % 9 == 0 else i - i % 9]} if i else {}
    print(json.dumps({"id": i, "name": f"aten::op{i % 9}", "type": "COMP_NODE", **({"data_deps": [i - 1]} if i else {}), **parents,
                      "attr": [{"name": "is_cpu_op", "bool_val": True}]}))
END
python3 make.py > large.jsonl && orrery convert -q et large.jsonl -o large.et || exit 1
start=$(date +%s)
chakra_visualizer --input_filename large.et --output_filename large.dot
echo "status $?"
grep -c 'label=' large.dot
grep -c 'pos=' large.dot
chakra_visualizer --input_filename large.et --output_filename large.pdf
echo "status $?"
head -c 5 large.pdf
echo
chakra_visualizer --input_filename large.et --output_filename large.graphml
echo "status $?"
grep -c '<node' large.graphml
orrery view dot --compat --layout large.et 2>/dev/null | cmp - large.dot && echo "same"
[ $(($(date +%s) - start)) -lt 60 ] && echo "in seconds"
