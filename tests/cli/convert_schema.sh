# SPDX-License-Identifier: Apache-2.0
# room: et_legacy
# Written as an older generation and read back; the generation that was read is kept on demand.
orrery gen -q all_reduce --ranks 1 -o new.et
orrery convert -q et new.et --schema 0.0.3 -o old.et
orrery convert -q et old.et --same-schema -o same.et
cmp old.et same.et && echo same
orrery convert -q et old.et -o current.et
orrery view json current.et -f jsonl
