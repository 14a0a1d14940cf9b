# SPDX-License-Identifier: Apache-2.0
# Neither a model nor a file; a file that is not there; no argument; too many tokens; a wrong option.
orrery model lama-3-8b
echo "$?"
orrery model something
echo "$?"
orrery model none.json
echo "$?"
orrery model
echo "$?"
orrery model llama-3.1-405b --seq 1099511627776
echo "$?"
orrery model gpt2 --sequence 3
echo "$?"
