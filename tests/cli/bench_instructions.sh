# SPDX-License-Identifier: Apache-2.0
# The table of instruction counts: two equal programs, one that is missing, and the limit.
command -v valgrind >/dev/null || { echo "valgrind is not installed"; exit 77; }
ldd "$ORR_BUILD/cli/orrery" | grep -q libasan && { echo "valgrind and sanitizers do not mix"; exit 77; }
"$ORR_ROOT/bench/instructions" --most 1 "$ORR_BUILD" "$ORR_BUILD/cli/orrery" start
echo "status $?"
"$ORR_ROOT/bench/instructions" "$ORR_BUILD" no/such start 2>&1
echo "status $?"
