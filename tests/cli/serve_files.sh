# SPDX-License-Identifier: Apache-2.0
# Files, groups beside them, and the set say the same; twice the same bytes.
orrery serve gpt2 --tp 2 --dp 2 -b 2 --prompt-tokens 20 --output-tokens 3 -o step -q >/dev/null
ls
cat step.json
orrery serve gpt2 --tp 2 --dp 2 -b 2 --prompt-tokens 20 --output-tokens 3 -o step.orr -q >/dev/null
orrery serve gpt2 --tp 2 --dp 2 -b 2 --prompt-tokens 20 --output-tokens 3 -o again.orr -q >/dev/null
cmp step.orr again.orr && echo same bytes
orrery convert et step.orr -o set -q
for rank in 0 1 2 3; do cmp step.$rank.et set.$rank.et; done
orrery check step
orrery check step.orr
