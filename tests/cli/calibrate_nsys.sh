# SPDX-License-Identifier: Apache-2.0
# A chip from an export of Nsight Systems: operators' shapes from PyTorch's ranges, their kernels by who launched them; and its picture. room: nsight
known() { orrery -q chip time h200 "$1" --json | grep -o '"us": [0-9.]*' | head -1 | cut -d' ' -f2; }
{
    for m in 1024 2048 4096; do
        echo "addmm|[[4096], [$m, 4096], [4096, 4096]]|nvjet_hsh_128x256_64x4_TNT|$(known "gemm bf16 m=$m n=4096 k=4096 bias")"
        echo "mm|[[$m, 4096], [4096, 4096]]|sm90_xmma_gemm_bf16bf16_bf16f32_f32_nn_n_tilesize|$(known "gemm bf16 m=$m n=4096 k=4096 nn")"
        echo "mm|[[4096, $m], [$m, 4096]]|sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize|$(known "gemm bf16 m=4096 n=4096 k=$m tn")"
        echo "native_layer_norm|[[8, $m, 1024], [], [1024], [1024], []]|vectorized_layer_norm|$(known "norm bf16 m=$((8 * m)) n=1024 layer")"
        echo "gelu|[[$m, 16384], []]|elementwise|$(known "activation bf16 m=$((m * 16384)) gelu")"
        echo "softmax|[[$m, 64]]|softmax_warp_forward|9"
    done
} >rows
cat >export.py <<'PY'
import sqlite3, sys
path, ids = sys.argv[1], sys.argv[2] == "ids"
db = sqlite3.connect(path)
db.executescript("""CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, demangledName INTEGER, globalPid INTEGER, streamId INTEGER,
deviceId INTEGER, gridX INTEGER, correlationId INTEGER);""")
names, thread, host, device = {}, 7 << 24 | 9, 1000, 5000000
def number(text):
    if text not in names:
        names[text] = len(names) + 1
        db.execute("INSERT INTO StringIds VALUES (?, ?)", (names[text], text))
    return names[text]
for i, line in enumerate(open("rows")):
    op, sizes, kernel, us = line.strip().split("|")
    ns = int(float(us) * 1500)  # half as slow again
    text = f"aten::{op}, seq = {i}, op_id = {i}, sizes = {sizes}, input_op_ids = []"
    outer = f"aten::linear, op_id = {i}, sizes = {sizes}"
    for words, start, end in ((outer, host, host + 900), (text, host + 100, host + 800), ("other", host, host + 950)):
        row = (start, end, None, number(words), thread) if ids else (start, end, words, None, thread)
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?)", row)
    for part in (1, 2):  # two kernels make the operator
        call = 2 * i + part
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?)", (host + 200 * part, host + 200 * part + 50, thread, call))
        length = ns // 2
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, 7, 0, 1, ?)", (device, device + length, number(kernel), 7 << 24, call))
        device += length
    host += 1000
db.commit()
PY
python3 export.py plain.sqlite text
python3 export.py ids.sqlite ids
orrery -q calibrate kernels plain.sqlite --like h200 -o mine.yml --plot fit.svg
orrery -q calibrate kernels ids.sqlite --like h200 -o other.yml >/dev/null
cmp mine.yml other.yml && cat mine.yml
grep -c '<circle' fit.svg
python3 -c "import xml.dom.minidom; xml.dom.minidom.parse('fit.svg')"
orrery calibrate kernels nothing.sqlite --like h200 2>&1
echo "status $?"
python3 -c "import sqlite3; sqlite3.connect('empty.sqlite').execute('CREATE TABLE NVTX_EVENTS (start INTEGER, text TEXT, globalTid INTEGER)')"
orrery calibrate kernels empty.sqlite --like h200 -o no.yml 2>&1
echo "status $?, $(ls no.yml 2>/dev/null | wc -l) files"
: >rows
python3 export.py bare.sqlite text
orrery calibrate kernels bare.sqlite --like h200 2>&1
echo "status $?"
