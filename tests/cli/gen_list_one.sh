# SPDX-License-Identifier: Apache-2.0
orrery gen --list layered
orrery gen --list ALL_REDUCE
