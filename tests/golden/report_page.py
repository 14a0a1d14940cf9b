# SPDX-License-Identifier: Apache-2.0
"""What a report page holds, read by other means than ours: JSON, base64, zlib and the columns of
docs/format/report.md.  As a program: is the timeline in PAGE that of the trace events in FILE?"""
import base64
import json
import re
import sys
import zlib


def document(path):
    page = open(path, encoding="utf-8").read()
    return json.loads(re.search(r'<script type="application/json" id="orrery-data">(.*?)</script>', page, re.S)[1])


def varints(data):
    out, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    assert shift == 0
    return out


def columns(path, number):
    page = open(path, encoding="utf-8").read()
    packed = re.search(r'id="events-%d">(.*?)</script>' % number, page, re.S)[1]
    data = zlib.decompress(base64.b64decode(packed))
    assert data[:4] == b"ORT1"
    at, out = 4, []
    while at < len(data):
        length = int.from_bytes(data[at:at + 4], "little")
        out.append(data[at + 4:at + 4 + length])
        at += 4 + length
    assert len(out) == 11 and at == len(data)
    return out


def spans(path, number=0):
    """(rank, track, start ps, end ps, name, kind, group, size, id, peer, open), in the order of the file."""
    timeline = document(path)["runs"][number]["timeline"]
    first, start, length, name, kind, group, size, node, peer = [
        list(c) if k == 4 else varints(c) for k, c in enumerate(columns(path, number)[:9])]
    tick, base, texts, out, i = timeline["tick_ps"], timeline["start_ns"] * 1000, timeline["texts"], [], 0
    assert len(first) == len(timeline["tracks"]) and sum(first) == timeline["spans"] == len(kind)
    for track, count in zip(timeline["tracks"], first):
        at = base
        for i in range(i, i + count):
            at += start[i] * tick
            out.append((track["rank"], track["name"], at, at + length[i] * tick, texts[name[i]],
                        timeline["kinds"][kind[i] & 127], texts[group[i]], size[i], node[i] - 1, peer[i] - 1,
                        kind[i] > 127))
        i += count > 0
    return out


def arrows(path, number=0):
    v = varints(columns(path, number)[9])
    tick = document(path)["runs"][number]["timeline"]["tick_ps"]
    return [(v[k], v[k + 1], v[k + 2] * tick, (v[k + 2] + v[k + 3]) * tick) for k in range(0, len(v), 4)]


def samples(path, number=0):
    v = varints(columns(path, number)[10])
    timeline = document(path)["runs"][number]["timeline"]
    out, at = [], {}
    for k in range(0, len(v), 3):
        at[v[k]] = at.get(v[k], 0) + v[k + 1]
        counter = timeline["counters"][v[k]]
        out.append((counter["rank"], counter["name"], at[v[k]] * timeline["tick_ps"], v[k + 2] >> 1 ^ -(v[k + 2] & 1)))
    return out


def ps(us):
    return round(us * 1000000)


def from_events(path):
    """The same from a file of trace events that orrery wrote."""
    events = json.load(open(path, encoding="utf-8"))["traceEvents"]
    names, job = {}, None
    for e in events:
        if e["name"] == "thread_name":
            lane = e["args"].get("lane", 0)
            names[e["pid"], e["tid"]] = names[e["pid"], e["tid"] - lane] if lane else e["args"]["name"]
        if e["name"] == "process_name" and e["args"]["name"] == "all ranks":
            job = e["pid"]
    out = []
    for e in events:
        if e["ph"] == "X":
            a = e["args"]
            out.append((e["pid"], names[e["pid"], e["tid"]], ps(e["ts"]), ps(e["ts"]) + ps(e["dur"]), e["name"], e["cat"],
                        a.get("group", ""), a.get("bytes", 0), a.get("node", -1), a.get("peer", a.get("last_rank", -1)),
                        a.get("unfinished", False)))
    flows = [(e["args"]["span"], ps(e["args"].get("us", e["ts"])), e["ph"]) for e in events if e["ph"] in "sf"]
    flows = [(a[0], b[0], a[1], b[1]) for a, b in zip(flows[::2], flows[1::2])]
    for _, to, left, _ in flows:  # a page draws a receive from when its message left
        if out[to][5] == "receive" and left > out[to][2]:
            out[to] = out[to][:2] + (min(left, out[to][3]),) + out[to][3:]
    counted = [(None if e["pid"] == job else e["pid"], e["name"], ps(e["ts"]), list(e["args"].values())[0])
               for e in events if e["ph"] == "C"]
    return out, flows, counted


if __name__ == "__main__":
    want_spans, want_arrows, want_samples = from_events(sys.argv[2])
    for _, to, left, _ in want_arrows:  # the page draws a receive from when its message left (docs/accounting.md)
        if want_spans[to][5] == "receive":
            want_spans[to] = want_spans[to][:2] + (max(want_spans[to][2], left),) + want_spans[to][3:]
    got = spans(sys.argv[1])
    assert sorted(got) == sorted(want_spans), "spans differ"
    ends = lambda list_, pairs: sorted((list_[a], list_[b], left, come) for a, b, left, come in pairs)
    assert ends(got, arrows(sys.argv[1])) == ends(want_spans, want_arrows), "arrows differ"
    key = lambda s: (s[0] is None, s[0] or 0, s[1], s[2], s[3])
    assert sorted(samples(sys.argv[1]), key=key) == sorted(want_samples, key=key), "samples differ"
    print(len(got), "spans,", len(want_arrows), "arrows,", len(want_samples), "samples: the same")
