# SPDX-License-Identifier: Apache-2.0
# The same requests as Azure, Splitwise, Vidur, BurstGPT, LLMServingSim, Mooncake and vLLM write them.
cat >own.csv <<'END'
arrival_us,prompt,output
0,80,2
2500,20,3
END
cat >azure.csv <<'END'
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,80,2
2023-11-16 18:15:46.6830900,20,3
END
cat >splitwise.csv <<'END'
request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size
0,2,0,0.0,1,80,2
1,2,0,0.0025,1,20,3
END
cat >vidur.csv <<'END'
arrived_at,num_prefill_tokens,num_decode_tokens
0.0,80,2
0.0025,20,3
END
cat >burstgpt.csv <<'END'
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
0,ChatGPT,80,2,82,Conversation log
0.0025,GPT-4,20,3,23,API log
END
cat >llmservingsim.jsonl <<'END'
{"input_toks": 80, "output_toks": 2, "arrival_time_ns": 0}
{"input_toks": 20, "output_toks": 3, "arrival_time_ns": 2500000}
END
cat >mooncake.jsonl <<'END'
{"timestamp": 0, "input_length": 80, "output_length": 2, "hash_ids": [46, 47]}
{"timestamp": 2.5, "input_length": 20, "output_length": 3, "hash_ids": [46]}
END
cat >vllm.json <<'END'
{"backend": "vllm", "request_rate": 400.0, "input_lens": [80, 20], "output_lens": [2, 3],
 "start_times": [51203.125, 51203.1275], "ttfts": [0.01, 0.02]}
END
orrery serve --ideal gpt2 -r own.csv -o own.orr -q
for list in azure.csv splitwise.csv vidur.csv burstgpt.csv llmservingsim.jsonl mooncake.jsonl vllm.json; do
    orrery serve --ideal gpt2 -r $list -o other.orr -q >/dev/null
    cmp own.orr other.orr && echo "$list: the same traces"
done
echo '[{"conversations": [{"from": "human", "value": "hello"}]}]' >sharegpt.json
orrery serve --ideal gpt2 -r sharegpt.json
echo "status $?"
# More iterations than traces are kept of: figures alone.
orrery serve llama-3.2-1b --phase decode -b 1 -p 1 -n 270000 --json 2>&1 | grep -o '"iterations": [0-9]*'
