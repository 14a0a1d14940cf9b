# SPDX-License-Identifier: Apache-2.0
# Under --tp-overlap products go in pieces with what travels: forward in tp, or 4 where their result is added up, backward in tp where
# the gradient is gathered; weights, the head, and all without it as a whole.
products() { # OPTION...
    orrery -q stage llama-3-8b --layers 1 --seq 2048 --tp 8 --batch 1 "$@" -o s.orr > /dev/null
    orrery -q view json s.orr -r 0 -f jsonl | grep -o '"name":"mb0[^"]*"\|gemm bf16[^;"]*' | awk '/^"name"/ { name = $0; next } { n = /pieces=/ ? $0 : "whole"; sub(/.*pieces=/, "", n); sub(/ .*/, "", n); gsub(/"name":"|"/, "", name); print name, n }'
}
products --tp-overlap
echo "without: $(products | grep -c whole) of $(products | wc -l | tr -d ' ') as a whole"
