# SPDX-License-Identifier: Apache-2.0
# Ranks that do not fit together: another size on one, a rank too few.
orrery -q gen all_reduce --ranks 4 -o a
orrery -q gen all_reduce --ranks 1 --comm-size 1000 -o odd.et
cp odd.et a.2.et
orrery check a
echo "status $?"
orrery -q gen send_recv_ring --ranks 3 -o ring
cp ring.0.et ring.3.et
orrery check ring
