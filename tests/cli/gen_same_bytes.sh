# SPDX-License-Identifier: Apache-2.0
orrery gen -q layered --nodes 5000 --seed 3 -o a.et
orrery gen -q layered --nodes 5000 --seed 3 -o b.et
orrery gen -q layered --nodes 5000 --seed 4 -o c.et
cmp a.et b.et
cmp -s a.et c.et || echo "another seed, another graph"
