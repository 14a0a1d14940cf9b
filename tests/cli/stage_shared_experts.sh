# SPDX-License-Identifier: Apache-2.0
# Megatron-Core computes shared experts under exchanges of copies, but before the router where tokens are sent once (its flex
# dispatcher); their gradients come last then.
order() { # WHAT OPTION...
    what=$1
    shift
    orrery -q stage deepseek-v2-lite --layers 2 --seq 512 --batch 8 --dp 8 --ep 8 "$@" -o s.orr > /dev/null
    orrery -q view json s.orr -r 0 -f jsonl > s.jsonl
    echo "$what: $(waits moe.router shared.down) $(waits shared.down.grad moe.router.grad)"
}
waits() { # NODE BEFORE
    id=$(grep "\"mb0.layer1.$2\"" s.jsonl | sed 's/.*"id":"\([0-9]*\)".*/\1/')
    grep "\"mb0.layer1.$1\"" s.jsonl | grep -q "\"$id\"" && echo behind || echo beside
}
order "copies" --dispatch copies
order "once" --dispatch once
order "hybridep" --dispatch hybridep
order "experts on one rank" --dispatch once --ep 1
order "another software" --dispatch once --software fsdp2-fused
orrery -q stage deepseek-v2-lite --layers 4 --seq 512 --batch 8 --pp 2 --dp 2 --ep 2 --dispatch once --pipeline dualpipe-v -o s.orr > /dev/null
orrery -q view json s.orr -r 0 -f jsonl > s.jsonl
echo "DeepSeek's own schedule: $(waits moe.router shared.down)"
