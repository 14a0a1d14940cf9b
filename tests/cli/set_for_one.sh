# SPDX-License-Identifier: Apache-2.0
# Commands that take one trace, or a timeline, say so when they get a set of traces.
orrery gen all_reduce --ranks 2 -o two.orr -q
orrery feed two.orr
echo "feed $?" >&2
orrery diff two.orr two.orr
echo "diff $?" >&2
orrery view timeline two.orr
echo "view $?" >&2
