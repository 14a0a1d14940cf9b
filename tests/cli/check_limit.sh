# SPDX-License-Identifier: Apache-2.0
# Many findings of a kind are counted, and the first ones shown.
orrery -q gen send_recv_ring --ranks 64 -o ring
for i in $(seq 1 63); do cp ring.0.et ring.$i.et; done
orrery check --limit 1 ring
