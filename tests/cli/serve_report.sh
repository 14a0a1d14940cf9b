# SPDX-License-Identifier: Apache-2.0
# What is told of a batch that goes through one pool, and through two.
orrery serve --ideal llama-3-8b --tp 2 -b 4 --prompt-tokens 1000 --output-tokens 10 -o one.orr
orrery serve --ideal llama-3-8b --tp 2 --dp 2 --decode-tp 4 -b 4 --prompt-tokens 1000 --output-tokens 10 -q
orrery serve --ideal llama-3-8b --tp 2 -b 4 --kv-memory 100GB --prompt-tokens 100000 --output-tokens 2 --device-memory 40GB
