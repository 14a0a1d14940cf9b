# SPDX-License-Identifier: Apache-2.0
# An export of Nsight Systems as a timeline: two processes, a thread and a stream each.
$ORR_BUILD/tests/unit/make_nsys traces nodes=1 rounds=4
orrery view timeline traces/trace_nid000000.sqlite --text --width 70 --ascii
orrery view timeline traces/trace_nid000000.sqlite -o - | grep -c '"ph":"X"'
