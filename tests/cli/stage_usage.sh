# SPDX-License-Identifier: Apache-2.0
# room: stage
# What cannot be meant is refused with exit status 2, before anything is made.
try() {
    orrery stage "$@"
    echo "exit $?"
}
try --compat
try --compat --output_dir d
try --compat --output_name w
try --compat -o x --output_dir d
try --compat -o x --dp 0
try --compat -o x --micro-batch -2
try --compat -o x --micro-batch many
try --compat -o x --compress
try --compat -o x.orr --format json
try --compat -o x.et --dp 2
try --compat -o 'x%d%d' --layers 1
try --compat -o 'x%5d' --layers 1
try --compat -o x --weight-shard 1
stage --output_dir d
echo "exit $?"
ls
