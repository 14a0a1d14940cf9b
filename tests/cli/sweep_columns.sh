# SPDX-License-Identifier: Apache-2.0
# export columns: one array per column, equal to the CSV; whole numbers, numbers with gaps, texts beyond ASCII. room: nsight
cat >c.yaml <<'E'
command: chip time
arguments: ["{chip}", "gemm bf16 m={m} n=64 k=64"]
variables: {chip: [h100, a100, "größe"], m: [64, 128, 4096]}
measures: {half: m / 128, gap: 1 / (m - 64), far: m * 1e20, negative: 0 - m}
E
orrery -q sweep c.yaml
orrery sweep export columns c.db --failed -o c.npz
orrery sweep export columns c.db --failed -o again.npz && cmp c.npz again.npz
orrery sweep export csv c.db --failed -o c.csv
python3 - <<'E'
import ast, csv, math, struct, zipfile
archive = zipfile.ZipFile("c.npz")
print("sums of the archive:", archive.testzip() or "good")
def array(name):
    data = archive.read(name + ".npy")
    assert data[:8] == b"\x93NUMPY\1\0", data[:8]
    size = struct.unpack("<H", data[8:10])[0]
    assert (10 + size) % 64 == 0
    head = ast.literal_eval(data[10:10 + size].decode())
    (rows,), kind, body = head["shape"], head["descr"], data[10 + size:]
    if kind.startswith("<U"):
        width = 4 * int(kind[2:])
        assert len(body) == width * rows
        return kind[:2], [body[i * width:(i + 1) * width].decode("utf-32-le").rstrip("\0") for i in range(rows)]
    assert len(body) == 8 * rows
    return kind, list(struct.unpack(f"<{rows}{'q' if kind == '<i8' else 'd'}", body))
rows = list(csv.DictReader(open("c.csv", encoding="utf-8")))
names = [name for name in rows[0] if name != "error"]
assert sorted(archive.namelist()) == sorted(name + ".npy" for name in names)
for name in names:
    kind, values = array(name)
    def same(text, value):
        if isinstance(value, str):
            return text == value
        return math.isnan(value) if text == "" else float(text) == value
    wrong = [(row[name], value) for row, value in zip(rows, values) if not same(row[name], value)]
    if wrong or name in ("point", "chip", "half", "gap", "far", "negative"):
        print(name, kind, wrong or f"{len(values)} values as in the CSV")
E
{
    orrery sweep export columns c.db
    orrery sweep export parquet c.db
    orrery sweep export columns c.db -o nowhere/c.npz
    echo "exit $?"
} 2>&1
