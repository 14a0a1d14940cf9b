# SPDX-License-Identifier: Apache-2.0
# What was printed must have arrived.
orrery help >/dev/full
