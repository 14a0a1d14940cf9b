# SPDX-License-Identifier: Apache-2.0
# TTFT and TPOT have an interval, of the same shares as the whole run; peaks have none.
orrery serve -q llama-3-8b -b 4 -p 512 -n 8 --hardware h100 -o set.orr >made.txt
orrery run -q set.orr --machine dgx-h100 >run.txt
grep -c 'first token after [0-9.]* ms ([0-9.]*-[0-9.]*; [0-9.]* ms at most), the next after [0-9.]* ms ([0-9.]*-[0-9.]*);' run.txt
orrery run -q set.orr --machine dgx-h100 --json | tr -d ' \n' >run.json
number() {
    sed -n "s/.*\"$1\":\\[*\\([0-9.]*\\).*/\\1/p" run.json
}
upper() {
    sed -n "s/.*\"$1\":\\[[0-9]*,\\([0-9]*\\)\\].*/\\1/p" run.json
}
for what in first_token_mean next_token_mean; do
    echo "$what $(number simulated_ns) $(number interval_ns) $(upper interval_ns) $(number ${what}_ns) $(number ${what}_interval_ns) $(upper ${what}_interval_ns)"
done | awk 'function near(a, b) { return a > 0 && a / b < 1.001 && b / a < 1.001 }
     { print $1, near($3 / $2, $6 / $5) && near($4 / $2, $7 / $5) && $6 < $5 && $5 < $7 ? "as the run" : $0 }'
orrery run -q set.orr --machine dgx-h100 --ideal | grep -c 'first token after [0-9.]* ms ([0-9.]* ms at most), the next after [0-9.]* ms;'
