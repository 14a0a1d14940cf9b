# SPDX-License-Identifier: Apache-2.0
# Many ranks: what is shown is one rank of each class, and costs no more than those.
printf '{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048, "num_hidden_layers": 16,
 "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 8192,
 "torch_dtype": "bfloat16", "architectures": ["LlamaForCausalLM"]}' >m.json
# More than 500 groups: their tags repeat, and no message is taken for another.
orrery stage -q m.json --layers 4 --tp 2 --pp 2 --dp 256 --batch 512 --seq 512 --zero 1 -o zero.orr >/dev/null
orrery run -q zero.orr --machine dgx-h100:128 --network unaware --fold verify --fold-why 2>&1 >/dev/null | tail -1
orrery run -q zero.orr --machine dgx-h100:128 --network unaware --steps 3 --fold verify --fold-why 2>&1 >/dev/null | tail -1
# A path along a pipeline.
orrery stage -q m.json --tp 2 --pp 16 --dp 1 --batch 32 --seq 512 -o pipe.orr >/dev/null
for network in fluid unaware; do
    for how in auto off; do
        orrery run -q pipe.orr --machine dgx-h100:4 --network $network --fold $how --critical-path=30 >$how.txt
    done
    diff <(sed '/^network/d' auto.txt) <(sed '/^network/d' off.txt) && grep '^network' auto.txt
done
# A ring over 16,384 ranks that begin at different times: path, timeline, page.
orrery stage -q m.json --tp 8 --pp 4 --dp 512 --batch 8192 --seq 512 -o step.orr >/dev/null
orrery run -q step.orr --machine dgx-h100:2048 --network unaware --critical-path=1 | grep '^critical path'
orrery run -q step.orr --machine dgx-h100:2048 --network unaware --timeline t.json --report r.html --what-if off |
    grep '^network'
grep -o '"process_name"' t.json | wc -l
grep -o '"ranks": *"[^"]*"' t.json
# Patterns that name their peers are one body with holes, and a set that has a body for each rank is folded, too.
orrery gen -q send_recv_ring --ranks 1024 -o ring.orr
orrery info ring.orr | grep -o '[0-9,]* ranks, [0-9,]* distinct'
orrery gen -q send_recv_ring --ranks 1024 --schema 0.0.4 -o bodies.orr
orrery info bodies.orr | grep -o '[0-9,]* ranks, [0-9,]* distinct'
for set in ring bodies; do
    orrery run -q $set.orr --machine dgx-h100:128 --network unaware --fold verify --fold-why 2>&1 >/dev/null | tail -1
done
mkdir one other
orrery gen -q compare_pipeline_parallel --ranks 8 -o one/r
orrery gen -q compare_pipeline_parallel --ranks 8 -o pipe.orr
orrery convert -q et pipe.orr -o other/r >/dev/null
for r in 0 1 2 3 4 5 6 7; do cmp one/r.$r.et other/r.$r.et; done
