# SPDX-License-Identifier: Apache-2.0
orrery gen all_reduce --ranks 2 -o x.et
