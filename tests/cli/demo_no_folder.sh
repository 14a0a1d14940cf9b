# SPDX-License-Identifier: Apache-2.0
orrery demo -o no/such/folder
