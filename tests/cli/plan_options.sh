# SPDX-License-Identifier: Apache-2.0
# What a search does not decide is what stage takes, and the command of a plan makes its traces.
try() {
    model=$1
    shift
    orrery plan -q $model "$@" --top 1 --json --write plan.orr >plan.json
    command=$(python3 -c 'import json; print(json.load(open("plan.json"))["plans"][0]["stage"].replace("plan.orr", "stage.orr"))')
    orrery ${command#orrery } -q --json >stage.json
    cmp plan.orr stage.orr && python3 - "$command" <<'END'
import json, sys
p, s = json.load(open("plan.json"))["plans"][0], json.load(open("stage.json"))
assert p["memory_bytes"] == max(x["peak_bytes"] for x in s["memory"]), (p["memory_bytes"], s["memory"])
words = sys.argv[1].split()
print(" ".join(words[words.index("--micro-batch") + 2:words.index("--machine")]))
END
}
M="--machine h800-deepseek:8 --batch 64 --seq 2048"
try deepseek-v2-lite $M --dtype fp8 --fp8-scaling block --fp8-kept deepseek --fp8-dispatch --dispatch once --moments-bf16 \
    --recompute-parts norm,mla-up,activation --fix tp=1,cp=1,pp=2,ep=8,zero=1,pipeline=1f1b,micro-batch=1,recompute=parts
try deepseek-v2-lite $M --dtype fp8 --fp8-weights only --expert-load 120 --expert-tp 1 --dispatch hybridep --ep-overlap \
    --fix tp=2,cp=1,pp=2,ep=8,zero=1,pipeline=1f1b,micro-batch=1,recompute=none
try gpt2 --machine dgx-h100:1 --batch 16 --seq 1024 --dtype fp16 --no-overlap --no-clipping --bucket 5MB --dropout --foreach \
    --no-master --offload-layers 2 --offload-percent 50 --attention full --fix tp=1,cp=1,pp=2,zero=1,pipeline=1f1b,recompute=none
try gpt2 --machine dgx-h100:1 --batch 16 --seq 1024 --shard 2 --sync-every-micro-batch --prefetch 2 --recompute-layers 3 \
    --fix tp=1,cp=2,pp=1,zero=3,micro-batch=1,recompute=full
try gpt2 --machine tpu-v4:2 --batch 16 --seq 1024 --software megatron-core --fix tp=1,cp=1,pp=1,micro-batch=1
# Another rule than stage's there is none.
for wrong in "--fp8-scaling block" "--fp8-attention" "--recompute-parts mla-up" "--recompute-parts some" "--offload-percent 30" \
    "--mtp" "--dtype nvfp4 --fp8-weights only" "--bucket x" "--recompute-layers 99999999999"; do
    orrery stage -q gpt2 $wrong 2>stage.txt && exit 1
    echo $?: $(sed -n 1p stage.txt)
    orrery plan -q gpt2 --machine dgx-h100:1 --batch 8 $wrong 2>plan.txt && exit 1
    sed "s/orrery plan/orrery stage/;s/help plan/help stage/" plan.txt | cmp - stage.txt
done
# What fixes the layers of stages is no option of a search; nothing of a step applies to serving.
for wrong in "--layout E|L" "--first-layers 1" "--order x" "--serve --mtp" "--serve --bucket 1MB" "--fix recompute=parts" \
    "--recompute-parts norm --fix recompute=full" "--recompute-layers 2 --fix recompute=none"; do
    orrery plan -q gpt2 --machine dgx-h100:1 $wrong 2>&1 | sed -n 1p
done
