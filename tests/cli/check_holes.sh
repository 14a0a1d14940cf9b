# SPDX-License-Identifier: Apache-2.0
# Ranks with groups and peers of their own: checked and summed up as a set and as files, with the same result.
cp "$ORR_ROOT/tests/fuzz/seeds/orr/holes.orr" job.orr
orrery check job.orr
orrery convert -q et job.orr -o job
orrery check job
head_and_hash='"input"\|"content_hash\|"ranks_distinct"'
orrery info --json job.orr | grep -v "$head_and_hash" >a
orrery info --json job | grep -v "$head_and_hash" >b
cmp a b && echo "same figures"
orrery info --json --rank 2 job.orr | grep hash >a
orrery info --json --rank 2 job | grep hash >b
cmp a b && echo "same rank"
orrery check -q --fix -o fixed.orr job.orr
orrery convert -q et fixed.orr -o fixed
for rank in 0 1 2 3; do cmp job.$rank.et fixed.$rank.et; done && echo "same files"
