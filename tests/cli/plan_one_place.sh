# SPDX-License-Identifier: Apache-2.0
# Places that are not proven to be the best: one, and several.
for top in 2 3; do
    orrery -q plan gpt2 --machine dgx-h100:1 --batch 8 --top $top --threads 1 | grep '^place'
done
