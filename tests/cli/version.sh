# SPDX-License-Identifier: Apache-2.0
orrery --version
orrery -V
