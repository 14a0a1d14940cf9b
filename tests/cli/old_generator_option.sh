# SPDX-License-Identifier: Apache-2.0
# room: chakra
chakra_generator --num_dims 2
