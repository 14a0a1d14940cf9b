# SPDX-License-Identifier: Apache-2.0
# An archive of PyTorch 2.11 becomes the traces of eight equal ranks, checked and run; an open size by its example and as
# given; what is written to standard output.
cp "$ORR_ROOT"/tests/capture/graphs/tiny.pt2 "$ORR_ROOT"/tests/fuzz/seeds/pt2/open.json "$ORR_ROOT"/tests/fuzz/seeds/pt2/views.json .
orrery convert export tiny.pt2 --world-size 8 --hardware h200 -o tiny.orr 2>&1
orrery check tiny.orr
orrery run -q tiny.orr -s "$ORR_ROOT"/examples/capture/system.json -t "$ORR_ROOT"/examples/capture/ring8.yml | head -1
orrery convert export open.json -o open.orr 2>&1
orrery convert export open.json --dim s0=16 -o open.orr 2>&1
orrery convert export open.json --dim s0=65 -o open.orr 2>&1
echo "exit $?"
orrery convert export views.json --json -o views.et 2>&1
orrery convert export views.json -o - >views.orr 2>/dev/null && orrery check views.orr
orrery convert export tiny.pt2 --model other -o x.orr 2>&1
echo "exit $?"
orrery convert et open.orr --dim s0=4 -o x.orr 2>&1
echo "exit $?"
