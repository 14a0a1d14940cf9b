# SPDX-License-Identifier: Apache-2.0
# The ending of the file picks the form and the packing; what is written reads back as the same bytes.
orrery gen -q one_metadata_node_all_types --ranks 1 -o all.et
for name in a.json a.jsonl.gz a.json.zst; do
    orrery view json all.et -o $name
    orrery convert -q et $name -o $name.et
    cmp all.et $name.et && echo $name
done
zcat a.jsonl.gz | wc -l
