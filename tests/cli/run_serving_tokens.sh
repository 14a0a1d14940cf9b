# SPDX-License-Identifier: Apache-2.0
# After `run` of a set made by `serve`: TTFT, TPOT and tokens/s, by the definitions of `serve`.
cat > requests.csv <<'CSV'
arrival_us,prompt,output
0,512,4
1000,256,6
40000,1024,1
200000,128,8
201000,700,3
CSV
cat > show.awk <<'AWK'
{ gsub(/[{},]/, "\n"); n = split($0, part, "\n")
  for (i = 1; i <= n; i++) if (match(part[i], /"(first_token_mean|first_token_most|first_token_max|next_token_mean|last_token|time|requests|output_tokens)(_ns|_ps)?":/)) {
      split(part[i], kv, ":"); key = kv[1]; gsub(/[ "]/, "", key); value[key] = kv[2] + 0 } }
END { for (key in value) print key, value[key] }
AWK
figures() { awk -f show.awk | sort; }
# One rank at full peaks: the estimate of `serve` is the run, but for rounding.
orrery -q serve llama-3-8b --ideal -r requests.csv -o one.orr --json | figures > serve.txt
orrery -q run one.orr --machine dgx-h100 --ideal --json | figures > run.txt
awk 'NR == FNR { served[$1] = $2; next }
     { run[$1] = $2 }
     function near(what, a, b) { print what, (a > 0 && a - b < a / 1000 && b - a < a / 1000 ? "as serve says" : a " and " b) }
     END { print "requests", served["requests"], run["requests"]; print "tokens", served["output_tokens"], run["output_tokens"]
           near("first token, mean:", served["first_token_mean_ps"] / 1000, run["first_token_mean_ns"])
           near("first token, most:", served["first_token_most_ps"] / 1000, run["first_token_max_ns"])
           near("next token:", served["next_token_mean_ps"] / 1000, run["next_token_mean_ns"])
           near("all tokens:", served["time_ps"] / 1000, run["last_token_ns"]) }' serve.txt run.txt
# Several ranks make the same tokens, several replicas serve, prefill and decode are apart: each token counts once, and
# folding changes nothing.
for how in "--tp 2 --dp 2" "--pp 2" "--tp 2 --decode-tp 1 --decode-dp 3" "--tp 2 --chunk 200"; do
    orrery -q serve llama-3-8b -r requests.csv $how -o set.orr >/dev/null
    for network in fluid unaware aware; do
        orrery -q run set.orr --machine dgx-h100 -n $network --json | figures | grep token > folded.txt
        orrery -q run set.orr --machine dgx-h100 -n $network --fold off --json | figures | grep token > every.txt
        cmp -s folded.txt every.txt && echo "$how, $network: $(grep output folded.txt), folded or not"
    done
done
orrery -q run set.orr --machine dgx-h100 --ideal | grep -A1 'first token'
orrery -q run set.orr --machine dgx-h100 --ideal --json > run.json
orrery -q report run.json -o page.html && tr ',' '\n' < page.html | grep -c '"first_token_ns": *[0-9]'
# Training says nothing of requests; nor does the last of several steps.
orrery -q stage gpt2 --batch 1 -o train.orr > /dev/null
orrery -q run train.orr --machine dgx-h100 --json | grep -c '"serving"'
orrery -q run one.orr --machine dgx-h100 --steps 2 --json | grep -c '"serving"'
true
