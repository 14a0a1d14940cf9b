# SPDX-License-Identifier: Apache-2.0
# A node type without a name: an error, unless it is asked for.
printf '\4\10\1\30\13' >odd.et
orrery info odd.et
echo "exit status $?"
orrery info odd.et --lenient | sed -n '/^Nodes by type/,/^$/p'
