# SPDX-License-Identifier: Apache-2.0
# A forgotten command is a mistake that a script must notice: exit status 2, nothing on stdout.
orrery
