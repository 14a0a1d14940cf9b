# SPDX-License-Identifier: Apache-2.0
# Tables of layers as people keep them: rows of commas, titles, remarks, tabs, a sparsity, columns of their own behind an
# empty one.  What cannot be true is refused at its place.
printf '[architecture_presets]\nArrayHeight: 8\nArrayWidth: 8\nIfmapSramSz: 1\nFilterSramSz: 1\nOfmapSramSz: 1\nDataflow: ws\n' >a.cfg
head='Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides'
try() {
    cat >net.csv
    orrery scalesim -c a.cfg -t net.csv --csv | grep -v '^#' | cut -d, -f1-4
}
printf '%s,,,Eh,Ew,e2\n,,,,,,,,,,,,\nConv1,16,16,3,3,3,8,1,,,14,14,196\nConv2,14,14,1,1,8,8,1,,,,,\n' "$head" | try
printf '%s,\n\nNetA,\nConv1,16,16,3,3,3,8,1,\n,,,,,,,,\nNetB,,,,,,,,\nConv1,16,16,3,3,3,8,1,1,\n' "$head" | try
printf '%s\nConv1_dw, 16, 16, 3, 3, 1, 1, 1,#dw\nConv2, 16, 16, 3, 3, 3, 8, 1, 2, # remark, with a comma\n' "$head" | try
printf 'Layer\tIFMAP Height\tIFMAP Width\tFilter Height\tFilter Width\tChannels\tNum Filter\tStrides\t\nConv 1\t16\t16\t3\t3\t3\t8\t1\t\n' | try
printf '%s, Sparsity,\nConv1, 16, 16, 3, 3, 3, 8, 1, 2:4,\nConv2, 16, 16, 3, 3, 3, 8, 1,\n' "$head" | try
printf 'Layer, M, N, K, Sparsity,\nfc, 8, 8, 16, 1 : 4,\nfc2, 8, 8, 16,\n' | try
printf '%s,\nLSTM, 1, B, 1, 1, H, H, 1,\n' "$head" | try
printf '%s,\nConv1, 16, 16, 3,, 3, 8, 1,\n' "$head" | try
printf '%s, Sparsity,\nConv1, 16, 16, 3, 3, 3, 8, 1, 5:4,\n' "$head" | try
printf '%s, Sparsity,\nConv1, 16, 16, 3, 3, 3, 8, 1, a:4,\n' "$head" | try
printf '%s,\nConv1, 16, 16, 3, 3, 3, 8, 1, 1, 7,\n' "$head" | try
printf '%s,\ntitle without a comma\n' "$head" | try
printf '%s,\nOnly a title,\n' "$head" | try
