# SPDX-License-Identifier: Apache-2.0
# MLA and experts: expanded in a prefill, absorbed in decoding.
orrery model deepseek-v3 --tensors
orrery -q model deepseek-v3 --seq 1 --past 4095 --absorbed
