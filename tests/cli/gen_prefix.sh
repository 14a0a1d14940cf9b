# SPDX-License-Identifier: Apache-2.0
# Without -o the files carry the pattern's name; ids start at 0 in each, so all ranks are alike.
orrery gen all_reduce --ranks 3
ls
cmp all_reduce.0.et all_reduce.2.et
od -An -c all_reduce.0.et
