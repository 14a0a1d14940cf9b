# SPDX-License-Identifier: Apache-2.0
orrery info --per-ranks a.orr
