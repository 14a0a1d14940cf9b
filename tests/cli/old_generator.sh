# SPDX-License-Identifier: Apache-2.0
# room: chakra
# The old names are silent; --num_dims selects the generation that had it; none of 0 ranks is nothing.
chakra_generator --num_npus 1
ls | wc -l
mkdir dims && cd dims
et_generator --num_npus 1 --num_dims 2
ls
mkdir none && cd none
chakra_generator --num_npus 0
ls
