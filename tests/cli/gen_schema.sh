# SPDX-License-Identifier: Apache-2.0
# room: et_legacy
# The first generation: no metadata, id and type always written.
orrery gen -q one_comp_node --schema eg -o old
ls
od -An -tx1 old.0.eg
