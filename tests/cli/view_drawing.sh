# SPDX-License-Identifier: Apache-2.0
# room: drawing
# What is shown, and what shares a box; the same bytes every time; a node that is not there.
orrery gen -q two_comp_nodes_dependent --ranks 1 -o two.et
orrery view dot two.et
orrery view dot two.et --collapse | grep -c ' x 2'
orrery view dot two.et --around 1 --depth 0 | grep -c 'label='
orrery view dot two.et --layout | grep -c 'pos='
for kind in svg pdf png; do
    orrery view $kind two.et -o a.$kind
    orrery view $kind two.et -o b.$kind
    cmp a.$kind b.$kind
done
orrery view svg two.et --around 7 -o c.svg
echo "exit $?"
ls
