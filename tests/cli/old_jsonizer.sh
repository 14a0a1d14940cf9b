# SPDX-License-Identifier: Apache-2.0
# room: chakra
# The old name, its options abbreviated; a damaged file is printed as the old program does, with a remark.
orrery gen -q one_comp_node --ranks 1 -o one.et
chakra_jsonizer --input_filename one.et --output_filename one.json
cat one.json && echo
head -c 24 one.et >cut.et
chakra_jsonizer --input cut.et --output cut.json
cat cut.json && echo
: >none.et
chakra_jsonizer --input none.et --output none.json
cat none.json && echo
