# SPDX-License-Identifier: Apache-2.0
# room: chakra, drawing
# The old name: its names for files, an ending it does not know, and one error without a file on bad input.
orrery gen -q two_comp_nodes_dependent --ranks 1 -o two.et
chakra_visualizer --input_filename two.et --output_filename two.graphml
cat two.graphml && echo
chakra_visualizer --input two.et --output a.dot.b.dot
grep -c 'arrowhead=normal' a.b.dot
chakra_visualizer --input two.et --output two.pdf
head -c 5 two.pdf && echo
chakra_visualizer --input two.et --output two.svg
echo "exit $?"
printf '\7\10\11\12\13' >bad.et
chakra_visualizer --input bad.et --output bad.dot
echo "exit $?"
chakra_visualizer --input nowhere.et --output bad.graphml
echo "exit $?"
ls
