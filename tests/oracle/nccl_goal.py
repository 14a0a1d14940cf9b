#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the NCCL -> GOAL generator (docs/spec/goal.md, section 5).

  nccl_goal.py -i TRACE_DIR -s SIMPLE.json -l LL.json [-o OUT_DIR] [-m] [--nccl_log FILE] [--exact-tags]
      writes OUT_DIR/output.goal, or the text to stdout without -o. Files are read in sorted path order; timing tables are
      used without random numbers (first sample, mean), as in the golden data.
  nccl_goal.py --random SEED --out DIR    random case: sqlite/*.sqlite, simple.json, ll.json, plain.goal, merged.goal (-m)
  nccl_goal.py --verify DIR [NPKIT_DIR]   every successful output.goal case of DIR/manifest.json

Covered: sections 5.2 to 5.8 and 5.10 (sequential path). Not covered: the intermediate GOAL (5.9), -p and its crashes, the
retry without clipping, warnings. Rejected: GPUs without any NCCL call (the reference fails too) and GPUs with calls but no
NCCL kernel. A group is written on the stream of its first call; groups across streams are not modelled. --exact-tags takes
hashes modulo 1000 exactly (the fix named in 5.5) instead of the reference's mixed precision.
"""
import argparse
import bisect
import itertools
import json
import math
import os
import random
import re
import sqlite3
import sys

MASK = (1 << 64) - 1
RING, TREE = 1, 0
SIMPLE = 2
REDUCE_KEY, COPY_KEY = "NPKIT_EVENT_GPU_RECV_REDUCE_SEND", "NPKIT_EVENT_GPU_DIRECT_RECV_COPY_SEND"
OP_IDS = {"AllReduce": 0, "AllGather": 1, "ReduceScatter": 2, "Broadcast": 3, "Reduce": 4, "Send": 6, "Recv": 6}
LETTERS = dict(zip("AllGather AllReduce Broadcast ReduceScatter Recv Send".split(), "ABCDEF"))        # section 5.5
KERNEL_LETTERS = {**LETTERS, "Send": "E", "SendRecv": "E"}

# Marker texts of section 5.2. <x> is a number, <x:H> a hexadecimal word, <x:S> a signed number, <x:W> any word.
MARKERS = [
    ("comm_info", "commHash <hash:H> commId <id:H> rank <rank> nranks <size> pid <pid>"),
    ("ring", "commHash <hash:H> Rings [<channel>] <prev>-><me>-><next> pid <pid>"),
    ("tree", "commHash <hash:H> Trees [<channel>] <c1:S>/<c2:S>/<c3:S>-><me:S>-><up:S> pid <pid>"),
    ("window_start", "nsys profiling start, pid: <pid>"),
    ("window_end", "nsys profiling stopped, pid: <pid>"),
    ("group_start", "ncclGroupStart(): pid <pid>"),
    ("group_end", "ncclGroupEnd(): pid <pid>"),
    ("work", "nWarps <warps> count <count> chunkCount <chunk> workCount <total> lastChunkCount <last> workOffset <offset> "
             "sendbuff <src> recvbuff <dst> pid <pid>"),
    ("p2p", "Bytes <bytes> nWarps <warps> p2pType <type> peer <peer> proto <proto> countHi32 <high> countLo32 <low> "
            "chunkSize <chunk> pid <pid>"),
    ("call", "nccl<op:A>(): commHash <hash:H>, stream <stream:H>, data_size <bytes>, type_size <width>,<rest:R> pid <pid>"),
    ("info", "collType <type> root <root> redOp <red> algo <algo> proto <proto> commHash <hash:W> stream <stream:W> data_size <bytes> "
             "type_size <width> chunkSize <chunk> chunkCount <count> chunkSteps <csteps> sliceSteps <ssteps> stepSize <step> pid <pid>"),
]
FORMS = {"": r"\d+", "H": "0x[0-9a-f]+", "S": r"-?\d+", "W": r"\S+", "A": "[a-zA-Z]+", "R": ".*"}


def compile_marker(template):
    parts = re.split(r"<(\w+)(?::(\w))?>", template)
    pattern = re.escape(parts[0])
    for name, form, literal in zip(parts[1::3], parts[2::3], parts[3::3]):
        pattern += "(?P<%s>%s)%s" % (name, FORMS[form or ""], re.escape(literal))
    return re.compile(pattern)


PATTERNS = [(kind, compile_marker(template)) for kind, template in MARKERS]


class TraceError(ValueError):
    """The input is rejected (as by the reference) or outside this model."""


# ------------------------------------------------------------------------------------------------- input (section 5.2)

class Row:
    """A recognised marker: times, position in the input, and its values (integers where they look like integers)."""

    def __init__(self, start, end, order, found):
        self.start, self.end, self.order = start, end, order
        self.values = {k: int(v) if re.fullmatch(r"-?\d+", v) else v for k, v in found.groupdict().items()}

    def __getitem__(self, name):
        return self.values[name]


class Gpu:
    def __init__(self, node, pid):
        self.node, self.pid, self.rank = node, pid, None
        self.rows, self.kernels, self.calls, self.events = {}, [], [], []


class Trace:
    """All files: GPUs in order of first appearance, communicator and topology rows in file order."""

    def __init__(self, folder):
        self.gpus, self.members, self.topology = {}, [], {"ring": [], "tree": []}
        self.orders = itertools.count()
        paths = sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names if name.endswith(".sqlite"))
        if not paths:
            raise TraceError("no .sqlite file")
        for path in paths:
            self.read(path, node_of(os.path.basename(path)))

    def gpu(self, node, pid):
        return self.gpus.setdefault((node, pid), Gpu(node, pid))

    def read(self, path, node):
        base = sqlite3.connect(path)
        for start, end, text in base.execute("SELECT start, end, text FROM NVTX_EVENTS"):
            order = next(self.orders)
            for kind, pattern in PATTERNS if text else ():
                found = pattern.match(text)
                if found:
                    self.add(node, kind, Row(start, end, order, found))
                    break
        query = ("SELECT k.start, k.end, s.value, k.streamId, k.globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL k "
                 "JOIN StringIds s ON s.id = k.demangledName WHERE s.value LIKE 'nccl%'")
        for start, end, name, stream, global_pid in base.execute(query):
            letters = re.search("ncclDevKernel_([a-zA-Z]+)", name)
            pid = (global_pid >> 24) & 0xFFFFFF
            self.gpu(node, pid).kernels.append((start, end, letters and letters.group(1), stream))
        base.close()

    def add(self, node, kind, row):
        gpu = self.gpu(node, row["pid"])
        if kind == "comm_info":
            entry = (gpu, row["hash"], row["id"], row["rank"])
            if entry not in self.members:
                self.members.append(entry)
        elif kind in self.topology:
            self.topology[kind].append((gpu, row))
        else:
            gpu.rows.setdefault(kind, []).append(row)


def node_of(name):
    """Node id of a file name: nid<digits>, or the second field of profile_<job>_<node>_<rank>.sqlite, or 0."""
    _, found, rest = name.partition("nid")
    digits = "".join(itertools.takewhile(str.isdigit, rest))
    if found and digits:
        return digits
    fields = name[:-len(".sqlite")].split("_")[-4:]
    return fields[2] if len(fields) == 4 and fields[0].endswith("profile") and "".join(fields[1:]).isdigit() else "0"


# -------------------------------------------------------------------------------- association, kernel times (section 5.4)

class Intervals:
    """Which interval holds a time: the first one that ends at or after it, if it also started and has not ended."""

    def __init__(self, intervals):
        self.intervals = intervals
        self.last_end = list(itertools.accumulate((end for _, end in intervals), max))

    def at(self, time):
        index = bisect.bisect_left(self.last_end, time)
        if index < len(self.intervals) and self.intervals[index][0] <= time < self.intervals[index][1]:
            return index
        return None


class Call:
    """One NCCL API call with what was found out about it."""

    def __init__(self, row, comm):
        self.start, self.end, self.order = row.start, row.end, row.order
        self.op, self.stream, self.comm = row["op"], row["stream"], comm
        self.group, self.time, self.context = None, None, None
        self.infos, self.works, self.transfers = [], [], []

    @property
    def is_p2p(self):
        return self.op in ("Send", "Recv")


def outermost_groups(gpu):
    if "group_start" not in gpu.rows or "group_end" not in gpu.rows:
        raise TraceError("GPU %s/%d has no group markers" % (gpu.node, gpu.pid))
    marks = sorted([(row.start, 1) for row in gpu.rows["group_start"]] + [(row.start, -1) for row in gpu.rows["group_end"]])
    depth, opened, groups = 0, None, []
    for time, step in marks:
        if depth == 0 and step == 1:
            opened = time
        depth += step
        if depth < 0:
            raise TraceError("unbalanced group markers")
        if depth == 0:
            groups.append((opened, time))
    if depth:
        raise TraceError("unbalanced group markers")
    return groups


def attach(calls, rows, field):
    """Give each row to the latest call before it."""
    starts = [call.start for call in calls]
    intervals = Intervals(list(zip(starts, starts[1:] + [math.inf])))
    for row in sorted(rows, key=lambda row: row.start):
        index = intervals.at(row.start)
        if index is not None:
            getattr(calls[index], field).append(row)


def find_calls(gpu, comm_of):
    rows = sorted(gpu.rows.get("call", []), key=lambda row: row.start)
    gpu.calls = [Call(row, comm_of.get((gpu, row["hash"]), row["hash"])) for row in rows]
    if not gpu.calls:
        return
    groups = Intervals(outermost_groups(gpu))
    for call in gpu.calls:
        call.group = groups.at(call.start)
    collectives = [call for call in gpu.calls if not call.is_p2p]
    attach(collectives, gpu.rows.get("info", []), "infos")
    attach(collectives, gpu.rows.get("work", []), "works")
    for op, code in (("Send", 1), ("Recv", 2)):
        attach([call for call in gpu.calls if call.op == op],
               [row for row in gpu.rows.get("p2p", []) if row["type"] == code], "transfers")


def by_stream(items, stream_of):
    streams = {}
    for item in items:
        streams.setdefault(stream_of(item), []).append(item)
    return streams


def pair_streams(kernels, calls):
    """[(call, kernel)] when every kernel stream finds a call stream with the same letters, else None."""
    if any(kernel[2] not in KERNEL_LETTERS for kernel in kernels) or any(call.op not in KERNEL_LETTERS for call in calls):
        return None
    waiting = {}
    for stream in by_stream(calls, lambda call: call.stream).values():
        waiting.setdefault("".join(KERNEL_LETTERS[call.op] for call in stream), []).append(stream)
    for streams in waiting.values():
        streams.sort(key=lambda stream: (stream[0].start, stream[0].stream))
    pairs = []
    for stream in sorted(by_stream(kernels, lambda kernel: kernel[3]).values(), key=lambda s: (s[0][0], s[0][3])):
        candidates = waiting.get("".join(KERNEL_LETTERS[kernel[2]] for kernel in stream))
        if not candidates:
            return None
        pairs += zip(candidates.pop(0), stream)
    return pairs


def pair_by_time(kernels, calls):
    intervals, starts = Intervals([(call.start, call.end) for call in calls]), [call.start for call in calls]
    for kernel in kernels:
        index = intervals.at(kernel[0])
        if index is None:
            index = max(0, bisect.bisect_right(starts, kernel[0]) - 1)
        yield calls[index], kernel


def set_kernel_times(gpu):
    kernels, calls = sorted(gpu.kernels, key=lambda kernel: kernel[0]), gpu.calls
    if not kernels or not calls:
        raise TraceError("GPU %s/%d has no calls or no kernels" % (gpu.node, gpu.pid))
    if "window_start" in gpu.rows and "window_end" in gpu.rows:
        low, high = gpu.rows["window_start"][0].start, gpu.rows["window_end"][0].start
        kernels = [kernel for kernel in kernels if kernel[0] < high and kernel[1] > low]
        calls = [call for call in calls if call.start < high and call.end > low]
    leaders, followers = {}, []
    for call in calls:
        key = ("call", call.order) if call.group is None else ("group", call.group)
        if leaders.setdefault(key, call) is not call:
            followers.append((call, leaders[key]))
    leading = list(leaders.values())
    pairs = pair_streams(kernels, leading)
    for call, (start, end, _, _) in pair_by_time(kernels, leading) if pairs is None else pairs:
        call.time = (start, end) if call.time is None else (min(call.time[0], start), max(call.time[1], end))
    for call, leader in followers:
        call.time = leader.time and (leader.time[1], leader.time[1])


# ------------------------------------------------------------------------------------------ communicators (section 5.3)

class Communicator:
    def __init__(self, number):
        self.number, self.gpus, self.rings, self.trees = number, {}, {}, {}

    def synthesise(self, channels):
        """Default topology; ranks become dense."""
        self.gpus = dict(enumerate(self.gpus[rank] for rank in sorted(self.gpus)))
        count = len(self.gpus)
        for r in range(count):
            self.rings[r] = [((r - 1) % count, (r + 1) % count)] * channels
            children = [child for child in (2 * r + 1, 2 * r + 2) if child < count]
            self.trees[r] = [((r - 1) // 2 if r else -1, children)] * channels


def collect(rows):
    """Rows (gpu, comm id, rank) -> communicators; GOAL ranks by first appearance."""
    comms, ranked = {}, []
    for gpu, ident, rank in rows:
        comm = comms.setdefault(ident, Communicator(len(comms)))
        comm.gpus[rank] = gpu
        if gpu not in ranked:
            gpu.rank = len(ranked)
            ranked.append(gpu)
    return comms, ranked


def announced(trace):
    comms, ranked = collect([(gpu, ident, rank) for gpu, _, ident, rank in trace.members])
    by_hash = {(gpu.node, word): ident for gpu, word, ident, _ in trace.members}
    for kind, field in (("ring", "rings"), ("tree", "trees")):
        for gpu, row in sorted(trace.topology[kind], key=lambda pair: pair[1]["channel"]):
            comm = comms[by_hash[gpu.node, row["hash"]]]
            entry = ((row["prev"], row["next"]) if kind == "ring" else
                     (row["up"], [child for child in (row["c1"], row["c2"], row["c3"]) if child >= 0]))
            getattr(comm, field).setdefault(row["me"], []).append(entry)
    return comms, ranked


def inferred(trace, log):
    users, channels = {}, {}
    for gpu in trace.gpus.values():
        for call in gpu.calls:
            users.setdefault(call.comm, {})[gpu] = None
            channels[call.comm] = max(channels.get(call.comm, 1), len(call.works))
    rows = []
    for ident, gpus in users.items():
        ordered = sorted(gpus, key=lambda gpu: (int(gpu.node), gpu.pid))
        rows += [(gpu, ident, rank) for rank, gpu in enumerate(ordered)]
    if log:
        logged = list(read_log(log, trace, set(users)))
        rows = logged + [row for row in rows if row[1] not in {entry[1] for entry in logged}]
    comms, ranked = collect(rows)
    for ident, comm in comms.items():
        comm.synthesise(channels[ident])
    return comms, ranked


def read_log(path, trace, known):
    """Lines 'host:PID:TID [d] NCCL INFO ncclCommInitRankConfig comm X rank R nranks N ... commId H'."""
    gpus = {gpu.pid: gpu for gpu in trace.gpus.values() if gpu.calls}
    with open(path) as file:
        for line in file:
            words = line.split()
            if words[2:5] != ["NCCL", "INFO", "ncclCommInitRankConfig"] or words[0].count(":") != 2:
                continue
            named = dict(zip(words[5:], words[6:]))
            pid, ident = int(words[0].split(":")[1]), named.get("commId", "")
            if pid in gpus and ident.lower() in known and "rank" in named:
                yield gpus[pid], ident, int(named["rank"])


# ------------------------------------------------------------------------------------------- context labels (section 5.5)

def tuple_hash(numbers):
    prime, acc = 2870177450012600261, 2870177450012600261
    for number in numbers:
        acc = (acc + number * 14029467366897019727) & MASK
        acc = (acc << 31 | acc >> 33) & MASK
        acc = acc * 11400714785074694791 & MASK
    acc = (acc + (len(numbers) ^ prime ^ 3527539)) & MASK
    return 1546275796 if acc == MASK else acc


def parallelism(letters):
    block = len(letters) - len(letters.lstrip("A"))
    if block and re.fullmatch("(A{%d}D{%d})*(A{%d})?" % (block, block, block), letters):
        return 2
    return 1 if len(re.findall("[EF]", letters)) >= 2 else 0


def set_contexts(gpu, comms, exact):
    timed = sorted((call for call in gpu.calls if call.time), key=lambda call: call.time[0])
    letters = {}
    for call in timed + [call for call in gpu.calls if not call.time]:
        if call.op not in LETTERS:
            raise TraceError("nccl%s is not supported" % call.op)
        letters[call.stream] = letters.get(call.stream, "") + LETTERS[call.op]
    counters, hashes = {}, []
    for call in timed:
        key = (comms[call.comm].number, OP_IDS[call.op])
        sequence = counters[key] = counters.get(key, -1) + 1
        hashes.append(tuple_hash(key + (0 if call.is_p2p else sequence,)))
    mixed = len({value >> 63 for value in hashes}) == 2 and not exact
    for call, value in zip(timed, hashes):
        ident = int(math.fmod(float(value), 1000.0)) if mixed else value % 1000
        call.context = parallelism(letters[call.stream]) + 100 * ident
    gpu.events = timed


# ------------------------------------------------------------------------------------------- timing tables (section 5.8)

class TimingTable:
    def __init__(self, path):
        with open(path) as file:
            tables = json.load(file)
        self.tables = {key: sorted((int(size), samples) for size, samples in tables[key].items()) for key in (REDUCE_KEY, COPY_KEY)}

    def lookup(self, key, size):
        table = self.tables[key]
        at = bisect.bisect_left(table, (size,))
        if at == len(table) or at == 0 or table[at][0] == size:
            return table[min(at, len(table) - 1)][1][0]
        (x0, low), (x1, high) = table[at - 1], table[at]
        y0, y1 = sum(low) / len(low), sum(high) / len(high)
        return int((y1 - y0) / (x1 - x0) * (size - x0) + y0)


# --------------------------------------------------------------------------------------- output skeleton (section 5.6)

class RankText:
    """Lines of one rank. Every method that writes an operation returns its (first, last) label numbers."""

    def __init__(self, gpu):
        self.gpu, self.lines, self.labels, self.counters = gpu, [], itertools.count(), {}

    def line(self, text, *values):
        label = next(self.labels)
        self.lines.append("l%d: %s" % (label, text % values))
        return label, label

    def requires(self, later, earlier):
        self.lines.append("l%d requires l%d" % (later, earlier))

    def calc(self, duration, cpu):
        return self.line("calc %d cpu %d", duration, cpu)

    def sequence(self, *parts):
        """parts are functions that write an operation."""
        first = last = None
        for part in parts:
            begin, end = part()
            if last is None:
                first = begin
            else:
                self.requires(begin, last)
            last = end
        return first, last

    def parallel(self, parts, cpu):
        start, _ = self.calc(0, cpu)
        ends = []
        for part in parts:
            begin, end = part()
            self.requires(begin, start)
            ends.append(end)
        stop, _ = self.calc(0, cpu)
        for end in ends:
            self.requires(stop, end)
        return start, stop

    def transfer(self, word, peer, size, context, cpu):
        """send or recv; inside a node an empty message followed by the copy time of one half (section 5.7)."""
        key = (word, peer.rank, context)
        number = self.counters[key] = self.counters.get(key, -1) + 1
        if number > 9999 or context > 99999:
            raise TraceError("message id or context too large for the tag")
        tag, where = "%04d%05d" % (number, context), "to" if word == "send" else "from"
        near = peer.node == self.gpu.node
        message = lambda: self.line("%s %db %s %d tag %s cpu %d nic 0", word, 0 if near else size, where, peer.rank, tag, cpu)
        return self.sequence(message, lambda: self.calc(size // 300, cpu)) if near else message()


# ---------------------------------------------------------------------------------------------- expansion (section 5.7)

class Lane:
    """Writes primitives of one call on one cpu. A primitive is (steps, source, target): steps is a subset, in this order, of
    v (receive), r (reduce), c (copy), s (send)."""

    def __init__(self, text, tables, call, cpu, proto):
        self.text, self.tables, self.call, self.cpu, self.proto = text, tables, call, cpu, proto

    def atom(self, steps, source, target, size):
        parts = []
        if "v" in steps:
            parts.append(lambda: self.text.transfer("recv", source, size, self.call.context, self.cpu))
        if "r" in steps or "c" in steps:
            table = self.tables[self.proto == SIMPLE]
            work = sum(table.lookup(key, size) for letter, key in (("r", REDUCE_KEY), ("c", COPY_KEY)) if letter in steps)
            parts.append(lambda: self.text.calc(work, self.cpu))
        if "s" in steps:
            parts.append(lambda: self.text.transfer("send", target, size, self.call.context, self.cpu))
        return self.text.sequence(*parts)

    def sliced(self, steps, source, target, size, cap, slices):
        """Protocol rules for collectives."""
        if self.proto != SIMPLE:
            return self.atom(steps, source, target, round_up(size, 8))
        piece = max(round_up(size, 16 * slices) // slices, cap // 32)
        sizes = [min(piece, size - at) for at in range(0, size, piece)][:slices] if size else []
        return self.text.parallel([lambda n=n: self.atom(steps, source, target, n) for n in sizes], self.cpu)

    def point_to_point(self, row, peer):
        """Protocol rules for Send and Recv."""
        steps, source, target = ("s", None, peer) if self.call.op == "Send" else ("v", peer, None)
        size = row["high"] << 32 | row["low"]
        chunk = row["chunk"] or size
        if self.proto != SIMPLE:
            return self.atom(steps, source, target, round_up(size, 8))
        if chunk == 0 or size // chunk <= 1:
            return self.atom(steps, source, target, size)
        sizes = [chunk] * (size // chunk) + ([size % chunk] if size % chunk else [])
        return self.text.parallel([lambda n=n: self.atom(steps, source, target, n) for n in sizes], self.cpu)


def round_up(value, unit):
    return -(-value // unit) * unit


class Collective:
    """One collective call on one GPU: per channel a list of functions that write primitives."""

    def __init__(self, text, tables, call, comm):
        self.text, self.tables, self.call, self.comm, self.info = text, tables, call, comm, call.infos[0]
        self.rank = next(rank for rank, gpu in comm.gpus.items() if gpu is text.gpu)
        self.count, self.width = len(comm.gpus), self.info["width"]
        self.slices = self.info["csteps"] // self.info["ssteps"]
        self.cap = self.info["ssteps"] * self.info["step"]

    def write(self, cpu):
        builders = {(RING, "AllReduce"): self.ring_allreduce, (TREE, "AllReduce"): self.tree_allreduce,
                    (RING, "AllGather"): self.ring_allgather, (RING, "ReduceScatter"): self.ring_reducescatter,
                    (RING, "Broadcast"): self.ring_broadcast}
        build = builders.get((self.info["algo"], self.call.op))
        if build is None:
            raise TraceError("algorithm %d of %s is not supported" % (self.info["algo"], self.call.op))

        def channel(index, work):
            lane = Lane(self.text, self.tables, self.call, cpu + index, self.info["proto"])
            return self.text.parallel(build(lane, index, work), lane.cpu)

        works = self.call.works
        labels = self.text.parallel([lambda i=i, w=w: channel(i, w) for i, w in enumerate(works)], cpu)
        return labels, cpu + len(works)

    def step(self, lane, steps, source, target, size, cap=None):
        return lambda: lane.sliced(steps, source, target, size, self.cap if cap is None else cap, self.slices)

    def neighbours(self, index):
        before, after = self.comm.rings[self.rank][index]
        return self.comm.gpus[before], self.comm.gpus[after]

    def chunks(self, work):
        for offset in range(0, work["total"], work["chunk"]):
            yield min(work["chunk"], work["total"] - offset)

    def ring_allreduce(self, lane, index, work):
        before, after = self.neighbours(index)
        n, r, cap, parts = self.count, self.rank, self.cap, []
        size = work["chunk"]
        plan = ([("s", r - 1)] + [("vrs", r - j) for j in range(2, n)] + [("vrcs", r)] +
                [("vcs", r - j) for j in range(1, n - 1)] + [("v", r + 1)])
        for offset in range(0, work["total"], n * work["chunk"]):
            left = work["total"] - offset
            if left < n * work["chunk"]:
                size = work["last"]
            for steps, position in plan:
                elements = min(size, max(0, left - position % n * size))
                if steps != "s":
                    cap = max(round_up(elements * self.slices, 16), cap // 32)
                parts.append(self.step(lane, steps, before, after, elements * self.width, cap))
        return parts

    def tree_allreduce(self, lane, index, work):
        up, below = self.comm.trees[self.rank][index]
        parent, children = self.comm.gpus.get(up), [self.comm.gpus[child] for child in below]

        def chunk(size):
            step, many = self.step, lambda parts: lambda: self.text.parallel(parts, lane.cpu)
            fan_out = many([step(lane, "s", None, child, size) for child in children])
            if parent is None and children:
                kinds = ["vr"] * (len(children) - 1) + ["vrc"]
                parts = [many([step(lane, kind, child, None, size) for kind, child in zip(kinds, children)]), fan_out]
            else:
                parts = [step(lane, "s", None, parent, size), step(lane, "v", parent, None, size)]
                if children:
                    parts = [many([step(lane, "vr", child, None, size) for child in children])] + parts + [fan_out]
            return self.text.sequence(*parts)

        return [lambda size=size: chunk(size * self.width) for size in self.chunks(work)]

    def around(self, lane, index, work, steps, width):
        """Per chunk one primitive for each entry of steps."""
        before, after = self.neighbours(index)
        return [self.step(lane, kind, before, after, size * width) for size in self.chunks(work) for kind in steps]

    def ring_allgather(self, lane, index, work):
        in_place = work["src"] == work["dst"] + self.rank * work["count"]
        steps = ["s" if in_place else "cs"] + ["vcs"] * (self.count - 2) + ["v"]
        return self.around(lane, index, work, steps, 1)

    def ring_reducescatter(self, lane, index, work):
        return self.around(lane, index, work, ["s"] + ["vrs"] * (self.count - 2) + ["vrc"], self.width)

    def ring_broadcast(self, lane, index, work):
        root, after = self.comm.gpus[self.info["root"]], self.neighbours(index)[1]
        return self.around(lane, index, work, ["s" if self.text.gpu is root else "v" if after is root else "vcs"], 1)


class RankWriter:
    """All streams of one GPU."""

    def __init__(self, gpu, comms, tables):
        self.text, self.gpu, self.comms, self.tables = RankText(gpu), gpu, comms, tables

    def can_write(self, call):
        return bool(call.transfers) if call.is_p2p else bool(call.infos and call.works)

    def write_call(self, call, cpu):
        """((first, last), next free cpu)"""
        comm = self.comms[call.comm]
        if not call.is_p2p:
            return Collective(self.text, self.tables, call, comm).write(cpu)

        def row(index):
            entry = call.transfers[index]
            return Lane(self.text, self.tables, call, cpu + index, entry["proto"]).point_to_point(entry, comm.gpus[entry["peer"]])

        rows = [lambda i=i: row(i) for i in range(len(call.transfers))]
        return rows[0]() if len(rows) == 1 else self.text.parallel(rows, cpu), cpu + len(rows)

    def write_group(self, members, cpu):
        bound = cpu

        def member(call):
            nonlocal bound
            labels, bound = self.write_call(call, bound)
            return labels

        labels = self.text.parallel([lambda call=call: member(call) for call in members if self.can_write(call)], cpu)
        return labels, bound

    def write_stream(self, events, cpu):
        """Next free cpu."""
        bound, previous_end, groups, parts = cpu, None, set(), []

        def operation(call):
            nonlocal bound
            if call.group is None:
                labels, free = self.write_call(call, cpu)
            else:
                labels, free = self.write_group([other for other in self.gpu.events if other.group == call.group], cpu)
            bound = max(bound, free)
            return labels

        for call in sorted(events, key=lambda call: (call.time, call.order)):
            if call.group in groups or (call.group is None and not self.can_write(call)):
                continue
            if call.group is not None:
                groups.add(call.group)
            if previous_end is not None:
                gap = call.time[0] - previous_end
                if gap < 0:
                    raise TraceError("operations of one stream overlap")
                parts.append(lambda gap=gap: self.text.calc(gap, cpu))
            parts.append(lambda call=call: operation(call))
            previous_end = call.time[1]
        self.text.sequence(*parts)
        return bound


# ---------------------------------------------------------------------------------------------------------- whole run

def overlapping(first, second):
    return any(a.time[0] < b.time[1] and b.time[0] < a.time[1] for a in first for b in second)


def ordered_streams(gpu):
    streams = by_stream(gpu.events, lambda call: call.stream).values()
    return sorted(streams, key=lambda stream: (stream[0].context, len(stream), stream[0].stream))


def merge_all(streams_of):
    """Section 5.10: one stream per GPU when nothing overlaps on any GPU."""
    for streams in streams_of.values():
        done = []
        for stream in streams:
            if overlapping(stream, done):
                return streams_of
            done = done + stream
    return {gpu: [sum(streams, [])] for gpu, streams in streams_of.items()}


def generate(folder, simple, low_latency, merged=False, log=None, exact=False):
    """The text of output.goal."""
    trace = Trace(folder)
    comm_of = {(gpu, word): ident for gpu, word, ident, _ in trace.members}
    for gpu in trace.gpus.values():
        find_calls(gpu, comm_of)
    comms, ranked = announced(trace) if trace.members else inferred(trace, log)
    for gpu in ranked:
        set_kernel_times(gpu)
        set_contexts(gpu, comms, exact)
    streams_of = {gpu: ordered_streams(gpu) for gpu in ranked}
    if merged:
        streams_of = merge_all(streams_of)
    tables = (TimingTable(low_latency), TimingTable(simple))
    lines = ["num_ranks %d" % len(ranked)]
    for gpu, streams in streams_of.items():
        writer, cpu = RankWriter(gpu, comms, tables), 0
        for stream in streams:
            cpu = writer.write_stream(stream, cpu)
        lines += ["rank %d {" % gpu.rank] + writer.text.lines + ["}"]
    return "\n".join(lines) + "\n"


# --------------------------------------------------------------------------------------------- random, verification

class RandomTrace:
    """A small synthetic export. Kernels of a GPU never overlap unless overlap is drawn (second stream)."""

    def __init__(self, rng):
        self.rng = rng
        self.gpus = [(node, 1000 * (node + 1) + 11 * device, device) for node in range(rng.randint(1, 3))
                     for device in range(rng.randint(1, 3))]
        if len(self.gpus) == 1:
            self.gpus.append((1, 2500, 0))
        everyone = list(range(len(self.gpus)))
        self.comms = [everyone] + ([everyone[:2]] if rng.random() < 0.4 and len(everyone) > 2 else [])
        self.announce, self.window = rng.random() < 0.8, rng.random() < 0.7
        self.one_kernel_stream = rng.random() < 0.15                  # letters cannot match: time fallback
        self.marks, self.kernels = [[] for _ in self.gpus], [[] for _ in self.gpus]
        self.clock, self.busy = [1000000 + 137 * i for i in everyone], [0] * len(everyone)
        self.channels = rng.randint(1, 3)
        self.build()

    def mark(self, gpu, text, end=None):
        self.marks[gpu].append((self.clock[gpu], end, text + "pid %d" % self.gpus[gpu][1]))
        self.clock[gpu] += 10

    def build(self):
        everyone = range(len(self.gpus))
        if self.announce:
            for number, members in enumerate(self.comms):
                self.announcement(number, members)
        for gpu in everyone:
            if self.window:
                self.mark(gpu, "nsys profiling start, ")
                self.marks[gpu][-1] = self.marks[gpu][-1][:2] + ("nsys profiling start, pid: %d" % self.gpus[gpu][1],)
            self.mark(gpu, "ncclGroupStart(): ")
            self.mark(gpu, "ncclGroupEnd(): ")
        for index in range(self.rng.randint(1, 6)):
            number = self.rng.randrange(len(self.comms)) if index else 0       # every GPU makes at least one call
            if self.rng.random() < 0.7:
                self.collective(number)
            else:
                self.exchange(number)
        for gpu in everyone:
            self.clock[gpu] = max(self.clock[gpu], self.busy[gpu]) + 100
            if self.window:
                self.marks[gpu].append((self.clock[gpu], None, "nsys profiling stopped, pid: %d" % self.gpus[gpu][1]))

    def announcement(self, number, members):
        count, word = len(members), "commHash 0x%x " % (0xabc1 + number)
        for rank, gpu in enumerate(members):
            self.mark(gpu, "%scommId 0x%x rank %d nranks %d " % (word, 0xfeed0 + number, rank, count))
            for channel in range(self.channels):
                turn = 1 if channel % 2 == 0 else -1
                self.mark(gpu, "%sRings [%d] %d->%d->%d " % (word, channel, (rank - turn) % count, rank, (rank + turn) % count))
                flip = (lambda x: x) if channel % 2 == 0 else (lambda x: count - 1 - x)
                at = flip(rank)
                below = [flip(child) for child in (2 * at + 1, 2 * at + 2) if child < count]
                below += [-1] * (3 - len(below))
                up = flip((at - 1) // 2) if at else -1
                self.mark(gpu, "%sTrees [%d] %d/%d/%d->%d->%d " % (word, channel, *below, rank, up))

    def call(self, gpu, op, number, size):
        text = "nccl%s(): commHash 0x%x, stream 0x%x, data_size %d, type_size 4, " % (op, 0xabc1 + number, 0x550 + number, size)
        self.mark(gpu, text, self.clock[gpu] + 9)

    def kernel(self, gpu, name, number):
        start = max(self.clock[gpu], self.busy[gpu]) + 500
        self.busy[gpu] = start + self.rng.randint(1000, 20000)
        self.kernels[gpu].append((start, self.busy[gpu], "ncclDevKernel_%s(args)" % name, 20 if self.one_kernel_stream else 20 + number))
        self.clock[gpu] += 1000

    def collective(self, number):
        rng = self.rng
        op = rng.choice(["AllReduce", "AllReduce", "AllGather", "ReduceScatter", "Broadcast"])
        proto, members = rng.randrange(3), self.comms[number]
        algo = rng.randrange(2) if op == "AllReduce" else 1
        chunk = rng.choice([64, 1000, 4096, 16384])
        total = rng.randint(1, 6 * chunk)
        last, channels, root = rng.randint(1, chunk), rng.randint(1, self.channels), rng.randrange(len(members))
        csteps, ssteps = (rng.choice([(4, 2), (1, 1), (2, 1)]) if proto == 2 else (1, 1))
        step, in_place = rng.choice([32768, 131072, 524288]), rng.random() < 0.5
        for rank, gpu in enumerate(members):
            self.call(gpu, op, number, 4 * total)
            self.mark(gpu, "collType 4 root %d redOp 0 algo %d proto %d commHash 0x%x stream 0x%x data_size %d type_size 4 chunkSize 0 "
                      "chunkCount 0 chunkSteps %d sliceSteps %d stepSize %d " % (
                          root, algo, proto, 0xabc1 + number, 0x550 + number, 4 * total, csteps, ssteps, step))
            for channel in range(channels):
                source = 5000000 + rank * total if in_place else 77
                self.mark(gpu, "nWarps 16 count %d chunkCount %d workCount %d lastChunkCount %d workOffset %d sendbuff %d "
                          "recvbuff 5000000 " % (total, chunk, total // channels + 1, last, channel * total, source))
            self.kernel(gpu, op, number)

    def exchange(self, number):
        """Each GPU sends to its neighbour, grouped or bare."""
        rng, members = self.rng, self.comms[number]
        size, chunk, proto, grouped = rng.randint(1, 500000), rng.choice([0, 131072, 50000]), rng.choice([0, 2]), rng.random() < 0.6
        for rank, gpu in enumerate(members):
            rows = {"Send": (1, (rank + 1) % len(members)), "Recv": (2, (rank - 1) % len(members))}
            if grouped:
                self.mark(gpu, "ncclGroupStart(): ")
                for op in rows:
                    self.call(gpu, op, number, size)
            for op, (code, peer) in rows.items():
                if not grouped:
                    self.call(gpu, op, number, size)
                for _ in range(rng.choice([1, 1, 2])):
                    self.mark(gpu, "Bytes %d nWarps 16 p2pType %d peer %d proto %d countHi32 0 countLo32 %d chunkSize %d " % (
                        size, code, peer, proto, size, chunk))
                if not grouped:
                    self.kernel(gpu, "SendRecv", number)
            if grouped:
                self.mark(gpu, "ncclGroupEnd(): ")
                self.kernel(gpu, "SendRecv", number)

    def write(self, folder):
        os.makedirs(folder, exist_ok=True)
        for node in sorted({gpu[0] for gpu in self.gpus}):
            path = os.path.join(folder, "trace_nid%06d.sqlite" % (1200 + node))
            if os.path.exists(path):
                os.remove(path)
            base = sqlite3.connect(path)
            base.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER)")
            base.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
            base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
                         "globalPid INTEGER, demangledName INTEGER)")
            names = {}
            for index, (owner, pid, device) in enumerate(self.gpus):
                if owner != node:
                    continue
                process = 1 << 48 | pid << 24
                base.executemany("INSERT INTO NVTX_EVENTS VALUES (?,?,?,?,?)",
                                 [(start, end, 59, text, process | pid) for start, end, text in self.marks[index]])
                base.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,?,?,?)",
                                 [(start, end, device, stream, process, names.setdefault(name, len(names) + 1))
                                  for start, end, name, stream in self.kernels[index]])
            base.executemany("INSERT INTO StringIds VALUES (?,?)", [(ident, name) for name, ident in names.items()])
            base.commit()
            base.close()


def random_table(rng):
    sizes = sorted(rng.sample(range(8, 1 << 20), 6))
    return {key: {str(size): [100 + size // 50 + rng.randrange(50)] for size in sizes} for key in (REDUCE_KEY, COPY_KEY)}


def write_random(seed, out):
    rng = random.Random(seed)
    path = lambda name: os.path.join(out, name)
    RandomTrace(rng).write(path("sqlite"))
    for name in ("simple.json", "ll.json"):
        with open(path(name), "w") as file:
            json.dump(random_table(rng), file)
    for name, merged in (("plain.goal", False), ("merged.goal", True)):
        with open(path(name), "w") as file:
            file.write(generate(path("sqlite"), path("simple.json"), path("ll.json"), merged))


def verify(root, npkit):
    counts = {"equal": 0, "different": 0, "rejected as recorded": 0}
    for entry in json.load(open(os.path.join(root, "manifest.json"))):
        variant, scenario = entry.get("variant", "seqm"), entry["scenario"]
        if variant == "interm" or (entry.get("rc") and variant == "par"):
            continue
        tables = ("ault_Simple.json", "ault_LL.json") if variant == "ault" else ("npkit_simple.json", "npkit_ll.json")
        log = os.path.join(root, "traces", scenario, "log-0.out")
        wanted = None
        if not entry.get("rc"):
            name = entry.get("file") or entry.get("same_as") or scenario + ".output.goal"
            wanted = open(os.path.join(root, "expected", name)).read()
        try:
            got = generate(os.path.join(root, "traces", scenario, "sqlite"), *(os.path.join(npkit, t) for t in tables),
                           merged=variant != "seq", log=log if os.path.exists(log) else None)
        except TraceError:
            got = None
        same = "equal" if wanted is not None else "rejected as recorded"
        counts[same if got == wanted else "different"] += 1
        if got != wanted:
            print("differs:", scenario, variant)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-i", "--trace_dir")
    parser.add_argument("-o", "--output_dir")
    parser.add_argument("-s", "--npkit_data_simple")
    parser.add_argument("-l", "--npkit_data_ll")
    parser.add_argument("-m", "--merged", action="store_true")
    parser.add_argument("--nccl_log")
    parser.add_argument("--exact-tags", action="store_true")
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--out", default="nccl_case")
    parser.add_argument("--verify", nargs="+", metavar="DIR")
    args = parser.parse_args()
    if args.random is not None:
        return write_random(args.random, args.out)
    if args.verify:
        counts = verify(args.verify[0], args.verify[1] if len(args.verify) > 1 else os.path.join(args.verify[0], "npkit"))
        print(json.dumps(counts))
        return 1 if counts["different"] else 0
    if not (args.trace_dir and args.npkit_data_simple and args.npkit_data_ll):
        parser.error("-i, -s and -l are required")
    try:
        text = generate(args.trace_dir, args.npkit_data_simple, args.npkit_data_ll, args.merged, args.nccl_log, args.exact_tags)
    except TraceError as error:
        print("error:", error, file=sys.stderr)
        return 1
    if args.output_dir:
        os.makedirs(args.output_dir, exist_ok=True)
        with open(os.path.join(args.output_dir, "output.goal"), "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
