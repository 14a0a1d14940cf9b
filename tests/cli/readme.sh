# SPDX-License-Identifier: Apache-2.0
# Every command of the README's questions works.
awk '/^```sh$/ {on = 1; next} /^```$/ {on = 0} on' "$ORR_ROOT/README.md" >commands.sh
[ "$(grep -c '^orrery ' commands.sh)" -ge 6 ] || echo "too few commands"
bash -e commands.sh >out.txt 2>err.txt || { echo "status $?"; cat err.txt; }
[ -s step.html ] && echo "a report"
grep -c '^32 ranks finished after' out.txt
