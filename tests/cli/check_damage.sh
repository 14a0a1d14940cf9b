# SPDX-License-Identifier: Apache-2.0
# A damaged rank is reported and the others are still checked; status 3.
orrery -q gen send_recv_ring --ranks 4 -o ring
head -c 50 ring.2.et >cut && mv cut ring.2.et
printf '\0' | dd of=ring.1.et bs=1 seek=9 conv=notrunc 2>/dev/null # the metadata has 8 bytes, so this is in node 0
orrery check ring
