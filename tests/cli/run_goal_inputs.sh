# SPDX-License-Identifier: Apache-2.0
# room: loggopsim
# What a LogGOPS run was made of stands in its JSON: every file with the hash of its content, computed here a second time.
printf 'num_ranks 2\nrank 0 {\na: send 100b to 1\nb: recv 100b from 1\n}\n' >p.goal
printf 'rank 1 {\na: recv 100b from 0\nb: send 100b to 0\nb requires a\n}\n' >>p.goal
orrery convert goal p.goal -o p.bin -q
gzip -c p.goal >p.goal.gz
printf '0 100\n5000 200\n' >noise.txt
echo '[[0, 1], [2, 3]]' >places.json
orrery gen all_reduce --ranks 2 -o t.orr 2>/dev/null
printf 'topology: [Ring]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [500]\n' >ring.yml
cat >inputs.py <<'EOF'
import gzip, json, os, subprocess, sys

MASK = (1 << 64) - 1
C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def rotate(x, by):
    return (x << by | x >> 64 - by) & MASK


def stir(k):
    for by in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        k = (k ^ k >> 33) * by & MASK
    return k ^ k >> 33


def murmur3(data):
    """MurmurHash3 x64 128, seed 0: two words of 16 bytes, the last padded with zeros and only mixed in."""
    a = b = 0
    whole = len(data) // 16 * 16
    padded = data + bytes(16 - len(data) % 16)
    for at in range(0, whole + 16, 16):
        k1, k2 = (int.from_bytes(padded[at + i : at + i + 8], "little") for i in (0, 8))
        a ^= rotate(k1 * C1 & MASK, 31) * C2 & MASK
        if at < whole:
            a = ((rotate(a, 27) + b) * 5 + 0x52DCE729) & MASK
        b ^= rotate(k2 * C2 & MASK, 33) * C1 & MASK
        if at < whole:
            b = ((rotate(b, 31) + a) * 5 + 0x38495AB5) & MASK
    a, b = a ^ len(data), b ^ len(data)
    a = a + b & MASK
    b = b + a & MASK
    a, b = stir(a), stir(b)
    a = a + b & MASK
    return "%016x%016x" % (a, b + a & MASK)


def expected(path, role):
    if not os.path.isfile(path):
        return None
    if role == "traces":
        info = json.loads(subprocess.run(["orrery", "info", "--json", path], capture_output=True).stdout)
        return info["provenance"]["content_hash_murmur3_128"]
    with open(path, "rb") as f:
        data = f.read()
    return murmur3(gzip.decompress(data) if path.endswith(".gz") else data)


report = json.load(sys.stdin)
print(report["provenance"]["program"].split()[0], report["schedule"])
for i in report["provenance"]["inputs"]:
    found, known = i["content_hash_murmur3_128"], expected(i["path"], i["role"])
    print(" ", i["role"], i["path"], "no hash" if found is None else "right" if found == known else f"{found}, not {known}")
EOF
orrery run p.goal --json | python3 inputs.py
orrery run p.goal.gz --json | python3 inputs.py
orrery run - --network loggops --json <p.bin | python3 inputs.py
orrery run p.goal --job p.bin --placement places.json --noise noise.txt --json | python3 inputs.py
orrery run t.orr --network loggops --topology ring.yml --json | python3 inputs.py
LogGOPSim -f p.bin --json | python3 inputs.py
