# SPDX-License-Identifier: Apache-2.0
# What cannot be: status 2, one line, no file.
try() {
    orrery serve "$@" -o out.orr
    echo "status $?"
    [ ! -e out.orr ] || echo "something was written"
}
try llama-3-8b --tp 3
try llama-3-8b --pp 40
try llama-3-8b --ep 2
try mixtral-8x7b --tp 2 --dp 3 --ep 4
try llama-3-70b
try llama-3-8b --cp 2
try llama-3-8b --prompt-tokens 1000000
try gpt2 --prompt-tokens 1000
try gpt2 -r none.csv
try gpt2 -r none.csv -b 3
try gpt2 --link-rate 5
try gpt2 --hardware h2000
try gpt3-9000b
orrery serve gpt2 --compress
echo "status $?"
