# SPDX-License-Identifier: Apache-2.0
chakra_generator --num_dims 2
