# SPDX-License-Identifier: Apache-2.0
# The kernel of a convolution makes as many results as the layer, whatever the padding: kernels of a chip have none.
{
    echo Layer,type,batch,h,w,cin,cout,kh,stride,pad
    echo same,conv,64,56,56,64,64,3,1,1
    echo none,conv,64,56,56,64,64,3,1,0
    echo wide,conv,64,56,56,64,64,3,1,9
    echo strided,conv,64,224,224,3,64,7,2,3
    echo uneven,conv,64,299,299,3,32,3,2,0
    echo oblong,conv,64,40,90,64,64,3,1,0
} >conv.csv
orrery -q gemm conv.csv -n 1 -w v100 --json | python3 -c '
import csv, json, re, sys
rows = {row["Layer"]: {k: int(v) for k, v in row.items() if v.isdigit()} for row in csv.DictReader(open("conv.csv"))}
for layer in json.load(sys.stdin)["layers"]:
    size = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", layer["forward"]["kernels"][0]["kernel"])}
    results = (-(-size["side"] // size["stride"])) ** 2
    row = rows[layer["name"]]
    own = 1
    for side in (row["h"], row["w"]):
        own *= (side + 2 * row["pad"] - row["kh"]) // row["stride"] + 1
    print(layer["name"], "side", size["side"], "stride", size["stride"],
          "ok" if abs(results / own - 1) < 0.02 and layer["utilisation"] < 1 else (results, own, layer["utilisation"]))
'
