# SPDX-License-Identifier: Apache-2.0
# Sixteen traces, nothing wrong with them, and what is in them.
orrery demo
ls orrery-demo | wc -l
