# SPDX-License-Identifier: Apache-2.0
orrery gen one_comp_node --nodes 5
echo "status $?"
ls
