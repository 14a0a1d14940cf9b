# SPDX-License-Identifier: Apache-2.0
# From standard input to standard output.
orrery gen -q one_comp_node --ranks 1 -o one.et
orrery view json one.et -f jsonl | sed 's/"durationMicros":"5"/"durationMicros":"6"/' | orrery convert et - -o - >six.et
orrery view json six.et -f jsonl
