# SPDX-License-Identifier: Apache-2.0
orrery view jsno x.et
