# SPDX-License-Identifier: Apache-2.0
# What is said about a captured step: in words, as JSON, of one rank alone; and what is refused.
try() {
    orrery convert "$@"
    echo "exit $?"
}
cp "$ORR_ROOT"/tests/capture/graphs/[tp]p.json.gz "$ORR_ROOT/tests/fuzz/seeds/fx/good.json" .
try fx tp.json.gz -o tp.orr
try fx pp.json.gz --json -o pp.orr
try fx tp.json.gz -q --ranks 3 -o three.et
sed 's/aten.mm.default/mine.strange.default/' good.json >strange.json
try fx strange.json -o strange.orr
try fx - -q -o again.orr <strange.json
cmp strange.orr again.orr
try fx tp.json.gz --npus 4 -o no.orr
try et tp.orr --world-size 4 -o no.orr
try fx tp.json.gz --hardware abacus -o no.orr
try fx good.json --world-size 16 -o no.orr
ls
