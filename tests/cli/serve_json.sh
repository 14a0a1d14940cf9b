# SPDX-License-Identifier: Apache-2.0
# The object of --json, and that a program can read it.
orrery serve --ideal llama-3-8b --tp 2 --decode-tp 4 -b 4 --prompt-tokens 1000 --output-tokens 10 --json -o out.orr >out.json
cat out.json
python3 -c 'import json; d = json.load(open("out.json")); print(d["pools"][1]["phase"], d["moved_bytes"])'
