# SPDX-License-Identifier: Apache-2.0
# HybridEP: each copy of a token takes a weight of 4 bytes for every expert of a node with it, its gradient brings them back, and
# all ranks gather a byte for each token and expert before.
size() { # NODE: bytes of layer 0's node
    orrery -q view json s.orr -r 0 -f jsonl | grep "\"mb0.layer0.$1\"" | sed 's/.*"comm_size","int64Val":"\([0-9]*\)".*/\1/'
}
made() { # OPTION...
    orrery -q stage qwen3-30b-a3b "$@" --layers 1 --seq 256 --batch 16 --dp 16 --ep 16 -o s.orr > /dev/null
}
more() { # WHAT A B: by how many bytes B is more than A, for a token of 2048 numbers
    awk -v what="$1" -v a="$2" -v b="$3" 'BEGIN { print what ":", (b - a) / (a / 4096) }'
}

made --dispatch once --node-ranks 16
out=$(size moe.dispatch) back=$(size moe.combine)
made --dispatch hybridep --node-ranks 16
more "weights of 128 experts on a node" "$out" "$(size moe.dispatch)"
more "and of gradients" "$out" "$(size moe.dispatch.grad)"
[ "$(size moe.combine)" = "$back" ] && [ "$(size moe.combine.grad)" = "$back" ] && echo "results of experts are as before"
echo "gathered: $(size moe.dispatch.map)"
made --dispatch once --node-ranks 8
out=$(size moe.dispatch)
echo "gathered without HybridEP: $(size moe.dispatch.map)"
made --dispatch hybridep --node-ranks 8
more "weights of 64 experts on a node" "$out" "$(size moe.dispatch)"
