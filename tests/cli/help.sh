# SPDX-License-Identifier: Apache-2.0
# The overview and one command's help go to stdout, in three spellings of the same text.
orrery help
orrery --help | cmp - <(orrery help)
orrery help help | cmp - <(orrery help --help)
orrery -h | cmp - <(orrery help)
