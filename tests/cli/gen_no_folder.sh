# SPDX-License-Identifier: Apache-2.0
orrery gen one_comp_node -o no/such/folder.et
