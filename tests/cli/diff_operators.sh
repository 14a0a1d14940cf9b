# SPDX-License-Identifier: Apache-2.0
# A captured step against the same step as it was measured: two products and an activation, of which the measured run has one product
# of another size, inside an operator that was not captured.  Figures by hand: a product is 2 * 4 * 8 * 6 = 384 FLOPs, GELU 8 * 24.
cat >step.json <<'END'
{"format":"orrery-capture","version":1,"torch":"2.11.0","world_size":1,"step":0,
 "groups":[{"ranks":[0],"what":"world","family":0}],"notes":[],"graphs":[{"rank":0,
 "ops":["aten.mm.default","aten.gelu.default"],"modules":[],"lines":[],"storages":[128,192,96,96],"kept":[],
 "tensors":[{"shape":[4,8],"dtype":"float32","stride":[8,1],"offset":0,"storage":0,"device":"cpu"},
  {"shape":[8,6],"dtype":"float32","stride":[6,1],"offset":0,"storage":1,"device":"cpu"},
  {"shape":[4,6],"dtype":"float32","stride":[6,1],"offset":0,"storage":2,"device":"cpu"},
  {"shape":[4,6],"dtype":"float32","stride":[6,1],"offset":0,"storage":3,"device":"cpu"}],
 "nodes":[{"op":0,"phase":"forward","in":[0,1],"out":[2]},{"op":0,"phase":"forward","in":[0,1],"out":[2]},
  {"op":1,"phase":"forward","in":[2],"out":[3]}]}]}
END
cat >measured.csv <<'END'
op,shapes,count,gpu_us,parent
aten::mm,4x8|8x6,1,3,
aten::matmul,4x8|8x7,1,0,
aten::mm,4x8|8x7,1,4.5,aten::matmul
aten::gelu,4x6,1,2,
END
orrery diff --operators step.json measured.csv
orrery diff --operators step.json measured.csv --json --most 1
orrery diff --operators step.json measured.csv --within 50 >/dev/null
echo "within 50: $?"
orrery diff --operators step.json measured.csv --within 2 >/dev/null
echo "within 2: $?"
orrery diff --operators step.json measured.csv --hardware nothing.yml
echo "no hardware: $?"
orrery diff step.json measured.csv --hardware h200
echo "hardware alone: $?"
echo "op,count" >bad.csv
orrery diff --operators step.json bad.csv
echo "bad: $?"
orrery diff --operators measured.csv measured.csv
echo "no capture: $?"
