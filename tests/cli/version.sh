# SPDX-License-Identifier: Apache-2.0
orrery --version
orrery -V
orrery version
orrery run --version
orrery -q gen --version
orrery version now 2>&1
exit 0
