# SPDX-License-Identifier: Apache-2.0
# A set through every form and back: the same bytes each time.
orrery gen -q three_layer_data_parallel --ranks 3 -o net
orrery convert et net -o net.orr
orrery convert et net.orr -o from_orr
orrery convert et net.orr -o packed.orr --compress
orrery convert et packed.orr -o lines.jsonl
orrery convert et lines -o packed.et.gz
orrery convert et packed -o again
for r in 0 1 2; do
    cmp net.$r.et from_orr.$r.et && cmp net.$r.et again.$r.et && echo rank $r
done
ls
