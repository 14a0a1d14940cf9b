# SPDX-License-Identifier: Apache-2.0
orrery model --list
