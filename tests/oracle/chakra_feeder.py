#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the .et file and of the feeder (docs/spec/chakra.md, sections 1.1, 1.2, 6.1, 6.2).

Covers reading and writing .et streams (current schema, plain or gzip), the decoded form used by the golden data
(.jsonl), the issue order of feeder V2, and a validity check for any order a feeder with data and control dependencies
(V3) may produce. Limits: V2 files of up to one window (1,048,576 nodes); schemas older than 0.0.4 are not decoded.

  chakra_feeder.py order FILE.et            V2: take a node, complete it at once; one id per line
  chakra_feeder.py waves FILE.et            V2: take all ready nodes, complete them in that order; one line per wave
  chakra_feeder.py decode FILE.et           one JSON line for the metadata, one per node
  chakra_feeder.py encode FILE.jsonl OUT    the reverse of decode
  chakra_feeder.py check-v3 FILE.et ORDER   is ORDER (one id per line) possible when data and control deps count?
  chakra_feeder.py --random SEED --out DIR  random case: case.et, case.jsonl, case.v2.order, case.v2.waves
  chakra_feeder.py --verify DIR...          compare with *.v2.order, *.v2.waves, *.jsonl next to *.et files
"""
import glob
import gzip
import heapq
import json
import os
import random
import struct
import sys

NODE_TYPES = ["INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE", "COMM_SEND_NODE",
              "COMM_RECV_NODE", "COMM_COLL_NODE"]
KINDS = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
         "sfixed64", "bool", "string", "bytes"]
MEMBERS = {3 + 2 * i: (kind, False) for i, kind in enumerate(KINDS)}          # oneof members, section 1.2
MEMBERS.update({4 + 2 * i: (kind, True) for i, kind in enumerate(KINDS)})
FIXED = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q"}


class WireError(ValueError):
    """Not a decodable message."""


# ------------------------------------------------------------------------------------------------ wire level: reading

def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("bad varint")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7


def fields(data):
    """Yield (field number, wire type, raw value) of one message."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = read_varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise WireError("wire type %d" % wire)
        if at > len(data) or number == 0:
            raise WireError("message ends inside a field")
        yield number, wire, value


def scalar(kind, raw):
    """Raw wire value (integer or bytes) -> Python value."""
    if kind in FIXED:
        return struct.unpack(FIXED[kind], raw)[0]
    if kind == "string":
        return raw.decode("utf-8")
    if kind == "bytes":
        return raw.decode("latin1")
    if kind == "bool":
        return raw != 0
    if kind in ("sint32", "sint64"):
        return (raw >> 1) ^ -(raw & 1)
    if kind.startswith("uint"):
        return raw & 0xFFFFFFFF if kind == "uint32" else raw
    bits = 32 if kind == "int32" else 64
    raw &= (1 << bits) - 1
    return raw - (1 << bits) if raw >> (bits - 1) else raw


def repeated(kind, wire, raw):
    """Elements of one occurrence of a repeated field, packed or not."""
    if kind in ("string", "bytes") or wire != 2:
        return [scalar(kind, raw)]
    if kind in FIXED:
        size = struct.calcsize(FIXED[kind])
        return [scalar(kind, raw[i:i + size]) for i in range(0, len(raw), size)]
    values, at = [], 0
    while at < len(raw):
        value, at = read_varint(raw, at)
        values.append(scalar(kind, value))
    return values


def decode_attribute(data):
    name, doc, member = "", "", {"none": None}
    for number, _, raw in fields(data):
        if number == 1:
            name = raw.decode("utf-8")
        elif number == 2:
            doc = raw.decode("utf-8")
        elif number in MEMBERS:
            kind, is_list = MEMBERS[number]
            if is_list:
                items = [x for n, wire, r in fields(raw) if n == 1 for x in repeated(kind, wire, r)]
                member = {kind + "_list": items}
            else:
                member = {kind + "_val": scalar(kind, raw)}
    return {"name": name, **({"doc": doc} if doc else {}), **member}


def decode_metadata(data):
    version, attributes = "", []
    for number, wire, raw in fields(data):
        if wire != 2:
            raise WireError("not a GlobalMetadata message")
        if number == 1:
            version = raw.decode("utf-8")
        elif number == 2:
            attributes.append(decode_attribute(raw))
    return {"global": {"version": version, "attr": attributes}}


def decode_node(data):
    node = {"id": 0, "name": "", "type": NODE_TYPES[0], "ctrl_deps": [], "data_deps": [], "start_time_micros": 0,
            "duration_micros": 0}
    attributes, plain = [], {1: "id", 6: "start_time_micros", 7: "duration_micros"}
    for number, wire, raw in fields(data):
        if number in plain:
            node[plain[number]] = raw
        elif number == 2:
            node["name"] = raw.decode("utf-8")
        elif number == 3:
            node["type"] = NODE_TYPES[raw] if raw < len(NODE_TYPES) else raw
        elif number in (4, 5):
            node["ctrl_deps" if number == 4 else "data_deps"] += repeated("uint64", wire, raw)
        elif number in (8, 9):
            texts = {n: r.decode("utf-8") for n, _, r in fields(raw)}
            node["inputs" if number == 8 else "outputs"] = {
                key: texts.get(i, "") for i, key in ((1, "values"), (2, "shapes"), (3, "types"))}
        elif number == 10:
            attributes.append(decode_attribute(raw))
    node["attr"] = attributes
    return node


def messages(path):
    """Length-prefixed messages of a stream, plain or gzip. A cut message ends the stream."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    at = 0
    while at < len(data):
        try:
            size, start = read_varint(data, at)
        except WireError:
            return
        if start + size > len(data):
            return
        yield data[start:start + size]
        at = start + size


def read_et(path):
    """(metadata, nodes). Reading stops silently at the first message that does not parse, as feeder V2 does."""
    metadata, nodes = None, []
    for index, data in enumerate(messages(path)):
        try:
            if index == 0:
                metadata = decode_metadata(data)
            else:
                nodes.append(decode_node(data))
        except (WireError, UnicodeDecodeError, TypeError, AttributeError, struct.error):
            if index:
                break
    return metadata, nodes


# ------------------------------------------------------------------------------------------------ wire level: writing

def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def payload(kind, value):
    """(wire type, bytes) of one scalar."""
    if kind in FIXED:
        return 1 if struct.calcsize(FIXED[kind]) == 8 else 5, struct.pack(FIXED[kind], value)
    if kind in ("string", "bytes"):
        data = value.encode("utf-8" if kind == "string" else "latin1")
        return 2, varint(len(data)) + data
    if kind in ("sint32", "sint64"):
        value = value << 1 if value >= 0 else (-value << 1) - 1
    return 0, varint(int(value))


def encode_attribute(attribute):
    data = block(1, attribute["name"].encode()) if attribute["name"] else b""
    if attribute.get("doc"):
        data += block(2, attribute["doc"].encode())
    for number, (kind, is_list) in sorted(MEMBERS.items()):
        key = kind + ("_list" if is_list else "_val")
        if key not in attribute:
            continue
        value = attribute[key]
        if not is_list:
            wire, raw = payload(kind, value)
            data += varint(number << 3 | wire) + raw
        elif kind in ("string", "bytes"):
            data += block(number, b"".join(varint(1 << 3 | 2) + payload(kind, item)[1] for item in value))
        else:
            packed = b"".join(payload(kind, item)[1] for item in value)
            data += block(number, block(1, packed) if packed else b"")
    return data


def encode_metadata(metadata):
    head = metadata["global"]
    data = block(1, head["version"].encode()) if head["version"] else b""
    return data + b"".join(block(2, encode_attribute(item)) for item in head["attr"])


def encode_node(node):
    for key in ("id", "duration_micros", "start_time_micros"):
        if not 0 <= node[key] < 1 << 64:
            raise ValueError("%s out of range: %d" % (key, node[key]))
    kind = NODE_TYPES.index(node["type"]) if isinstance(node["type"], str) else node["type"]
    data = b""
    if node["id"]:
        data += varint(1 << 3) + varint(node["id"])
    if node["name"]:
        data += block(2, node["name"].encode())
    if kind:
        data += varint(3 << 3) + varint(kind)
    for number, key in ((4, "ctrl_deps"), (5, "data_deps")):
        if node[key]:
            data += block(number, b"".join(varint(item) for item in node[key]))
    for number, key in ((6, "start_time_micros"), (7, "duration_micros")):
        if node[key]:
            data += varint(number << 3) + varint(node[key])
    for number, key in ((8, "inputs"), (9, "outputs")):
        if key in node:
            texts = [node[key][part].encode() for part in ("values", "shapes", "types")]
            data += block(number, b"".join(block(i + 1, text) for i, text in enumerate(texts) if text))
    return data + b"".join(block(10, encode_attribute(item)) for item in node["attr"])


def write_et(path, metadata, nodes):
    with open(path, "wb") as file:
        for data in [encode_metadata(metadata)] * bool(metadata) + [encode_node(node) for node in nodes]:
            file.write(varint(len(data)) + data)


def write_jsonl(path, metadata, nodes):
    with open(path, "w") as file:
        for item in ([metadata] if metadata else []) + nodes:
            file.write(json.dumps(item) + "\n")


# ------------------------------------------------------------------------------------------------ feeder (section 6)

class FeederV2:
    """Smallest ready id first. A parent listed twice in data_deps blocks its child for ever (section 6.1)."""

    def __init__(self, nodes):
        self.waiting = {node["id"]: list(node["data_deps"]) for node in nodes}      # a later duplicate id replaces
        self.children = {}
        for child, parents in self.waiting.items():
            for parent in set(parents) & self.waiting.keys():
                self.children.setdefault(parent, []).append(child)
        self.ready = [i for i, parents in self.waiting.items() if not parents]
        heapq.heapify(self.ready)
        self.left = len(self.waiting)

    def take(self):
        return heapq.heappop(self.ready) if self.ready else None

    def complete(self, node):
        self.left -= 1
        for child in self.children.get(node, []):
            self.waiting[child].remove(node)
            if not self.waiting[child]:
                heapq.heappush(self.ready, child)


def v2_order(nodes):
    feeder, lines = FeederV2(nodes), []
    while feeder.ready:
        node = feeder.take()
        lines.append("%d\n" % node)
        feeder.complete(node)
    return "".join(lines) + ("stuck after %d\n" % len(lines) if feeder.left else "")


def v2_waves(nodes):
    feeder, lines = FeederV2(nodes), []
    while feeder.ready:
        wave = [feeder.take() for _ in range(len(feeder.ready))]
        lines.append("wave %d: %s\n" % (len(lines), " ".join(map(str, wave))))
        for node in wave:
            feeder.complete(node)
    return "".join(lines) + ("stuck\n" if feeder.left else "")


def check_v3(nodes, order):
    """None when order is complete and every node comes after its data and control dependencies, else a reason."""
    needs = {node["id"]: set(node["data_deps"]) | set(node["ctrl_deps"]) for node in nodes}
    done = set()
    for node in order:
        if node not in needs or node in done:
            return "node %d is unknown or issued twice" % node
        if needs[node] - done:
            return "node %d is issued before %s" % (node, sorted(needs[node] - done))
        done.add(node)
    for node in needs:
        if node not in done and not needs[node] - done:
            return "node %d is ready and was never issued" % node
    return None


# --------------------------------------------------------------------------------------------- random, verification

def random_attribute(rng, index):
    kind = rng.choice(KINDS)
    limit = {"int32": 1 << 31, "sint32": 1 << 31, "sfixed32": 1 << 31, "uint32": 1 << 32, "fixed32": 1 << 32,
             "uint64": 1 << 64, "fixed64": 1 << 64}.get(kind, 1 << 63)

    def value():
        if kind in ("string", "bytes"):
            return "".join(rng.choice("ab {}\u00e9") for _ in range(rng.randrange(6)))
        if kind == "bool":
            return rng.random() < 0.5
        if kind in ("double", "float"):
            return rng.randrange(-1000, 1000) / 8
        low = 0 if kind.startswith(("uint", "fixed")) else -limit
        return rng.choice([0, 1, limit - 1, low, rng.randrange(low, limit)])

    member = {kind + "_list": [value() for _ in range(rng.randrange(4))]} if rng.random() < 0.3 else {kind + "_val": value()}
    return {"name": "a%d" % index, **member}


def random_nodes(rng):
    ids = rng.sample(range(500), rng.randint(1, 40))
    nodes = []
    for at, ident in enumerate(ids):
        parents = rng.sample(ids[:at], min(at, rng.choice([0, 1, 1, 2, 3])))
        if rng.random() < 0.01:
            parents.append(rng.choice(parents + [999]))                       # duplicate or missing parent
        nodes.append({"id": ident, "name": "n%d" % ident, "type": rng.choice(NODE_TYPES),
                      "ctrl_deps": rng.sample(ids[:at], min(at, rng.choice([0, 0, 1]))), "data_deps": parents,
                      "start_time_micros": 0, "duration_micros": rng.randrange(1000),
                      "attr": [random_attribute(rng, i) for i in range(rng.randrange(4))]})
    if rng.random() < 0.5:
        rng.shuffle(nodes)
    return nodes


def write_random(seed, out):
    nodes = random_nodes(random.Random(seed))
    metadata = {"global": {"version": "1.0.0", "attr": []}}
    os.makedirs(out, exist_ok=True)
    base = os.path.join(out, "case")
    write_et(base + ".et", metadata, nodes)
    write_jsonl(base + ".jsonl", metadata, nodes)
    for suffix, text in ((".v2.order", v2_order(nodes)), (".v2.waves", v2_waves(nodes))):
        with open(base + suffix, "w") as file:
            file.write(text)


def verify(folders):
    counts = {name: [0, 0] for name in ("order", "waves", "decode", "encode", "v3")}

    def count(name, same, path):
        counts[name][not same] += 1
        if not same:
            print("differs:", name, path)

    paths = [p for folder in folders for p in sorted(glob.glob(os.path.join(folder, "**", "*.et"), recursive=True))]
    for path in paths:
        base = path[:-3]
        metadata, nodes = read_et(path)
        for name, compute in (("order", v2_order), ("waves", v2_waves)):
            if os.path.exists(base + ".v2." + name):
                count(name, compute(nodes) == open(base + ".v2." + name).read(), path)
        if os.path.exists(base + ".v3.order") and open(path, "rb").read(2) != b"\x1f\x8b":
            order = [int(line) for line in open(base + ".v3.order") if line.strip().isdigit()]
            count("v3", check_v3(list({n["id"]: n for n in nodes}.values()), order) is None, path)
        if os.path.exists(base + ".jsonl"):
            wanted = [json.loads(line) for line in open(base + ".jsonl")]
            if "global" not in wanted[0]:
                metadata, nodes = None, [decode_node(data) for data in messages(path)]
            got = ([metadata] if metadata else []) + nodes
            count("decode", json.dumps(got) == json.dumps(wanted), path)
            data = [encode_node(n) if "id" in n else encode_metadata(n) for n in wanted]
            count("encode", data == list(messages(path)), path)
    return counts


def main():
    words = sys.argv[1:]
    if len(words) >= 2 and words[0] == "--random":
        return write_random(int(words[1]), words[words.index("--out") + 1] if "--out" in words else "feeder_case")
    if len(words) >= 2 and words[0] == "--verify":
        counts = verify(words[1:])
        print(json.dumps(counts))
        return 1 if any(bad for _, bad in counts.values()) else 0
    if len(words) == 3 and words[0] == "encode":
        items = [json.loads(line) for line in open(words[1])]
        return write_et(words[2], items[0] if "global" in items[0] else None, [n for n in items if "id" in n])
    if len(words) < 2 or words[0] not in ("order", "waves", "decode", "check-v3"):
        print(__doc__, file=sys.stderr)
        return 2
    metadata, nodes = read_et(words[1])
    if words[0] == "check-v3":
        reason = check_v3(nodes, [int(line) for line in open(words[2]) if line.strip().isdigit()])
        print(reason or "valid")
        return 1 if reason else 0
    if words[0] == "decode":
        for item in ([metadata] if metadata else []) + nodes:
            print(json.dumps(item))
        return 0
    sys.stdout.write((v2_order if words[0] == "order" else v2_waves)(nodes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
