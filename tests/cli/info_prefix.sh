# SPDX-License-Identifier: Apache-2.0
# Ranks that differ, as files; the same through a prefix and through the folder.
mkdir traces
orrery gen send_recv_ring --ranks 4 -q -o traces/ring
orrery info traces/ring --per-rank --top 3 >prefix
orrery info traces --per-rank --top 3 >folder
diff <(tail -n +2 prefix) <(tail -n +2 folder)
sed "s/read by orrery .*/read by orrery/" prefix
