#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of GOAL schedules and LogGOPSim (docs/spec/goal.md, sections 1 to 3).

Covers the text format (1), the binary format (2), and the LogGP simulation of both variants, "lgs2023" and
"atlahs" (3.1 to 3.4), including the ordering rules needed for equal numbers. Not covered: network "simple" (3.5),
noise (3.6), the timeline file (3.7), queue statistics (3.8), the wording of syntax errors.

  loggops.py -f FILE [--variant V] [-L N] [-o N] [-g N] [-G X] [-O N] [-S N] [--stable]   simulate, JSON on stdout
  loggops.py -f FILE --to-binary OUT                                                     text -> binary
  loggops.py --random SEED --out DIR [--ranks N] [--ops N]                               write a random case
  loggops.py --verify expected.json GOALDIR                                              compare with recorded runs

FILE may be text or binary, also gzipped. An "expected.json" lists {"goal", "bin_sha256", "runs": [{"variant",
"args", "events", "host_times" | "left_in_queues" | "rc"}]}: the random mode writes the same form.
"""
import argparse
import gzip
import hashlib
import heapq
import json
import math
import os
import random
import re
import struct
import sys
from collections import deque

SEND, RECV, CALC, ARRIVAL = 1, 2, 3, 4          # 1..3 as stored in the binary file (section 2)
ANY = 0xFFFFFFFF
WRAP64 = (1 << 64) - 1
MAGIC = 4223
NODE = struct.Struct("<IBIQIBBIIII")            # 39 bytes per node (section 2)


class GoalError(ValueError):
    """The input is not a valid GOAL schedule."""


class OutOfRange(IndexError):
    """A send names a rank that does not exist: undefined behaviour in the references."""


class Op:
    """One line of a rank block. then / then_started hold the successors of requires / irequires edges."""
    __slots__ = ("kind", "peer", "size", "tag", "cpu", "nic", "blockers", "then", "then_started")

    def __init__(self, kind, size, peer=0, tag=0, cpu=0, nic=0):
        self.kind, self.size, self.peer, self.tag, self.cpu, self.nic = kind, size, peer, tag, cpu, nic
        self.blockers, self.then, self.then_started = 0, [], []


# ---------------------------------------------------------------------------------------------- text (section 1)

class TextReader:
    """Token reader for GOAL text. Indentation is accepted (the old parser mishandles it)."""

    def __init__(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"//[^\n]*", " ", text)
        self.tokens = re.findall(r"\d+|-1|[A-Za-z][A-Za-z0-9_]*|[^\s]", text)
        self.at = 0

    def peek(self, ahead=0):
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ""

    def take(self, *wanted):
        token = self.peek()
        if wanted and token not in wanted:
            raise GoalError("expected %s, found %r" % (" or ".join(wanted), token))
        self.at += 1
        return token

    def number(self, allow_any=False):
        token = self.take()
        if token == "-1" and allow_any:
            return ANY
        if not token.isdigit():
            raise GoalError("expected a number, found %r" % token)
        return int(token)

    def option(self, word, allow_any=False):
        """Value of an optional 'word NUMBER' pair, 0 when absent."""
        if self.peek() != word or self.peek(1) in (":", "requires", "irequires"):
            return 0
        self.take()
        return self.number(allow_any)

    def schedule(self):
        self.take("num_ranks")
        count = self.number()
        ranks = []
        while len(ranks) < count:
            self.take("rank")
            if self.number() != len(ranks):
                raise GoalError("ranks must appear in ascending order")
            ranks.append(self.block())
        return ranks

    def block(self):
        ops, labels = [], {}
        self.take("{")
        while self.peek() != "}":
            if self.peek(1) in ("requires", "irequires"):
                self.edge(ops, labels)
                continue
            if self.peek(1) == ":":
                label = self.take()
                if not label[0].isalpha() or label in ("calc", "send", "recv", "rank", "num_ranks"):
                    raise GoalError("%r cannot be a label" % label)
                self.take(":")
                labels.setdefault(label, len(ops))       # a second definition keeps the first meaning
            ops.append(self.operation())
        self.take("}")
        return ops

    def edge(self, ops, labels):
        later, word, earlier = self.take(), self.take(), self.take()
        for label in (later, earlier):
            if label not in labels:
                raise GoalError("A dependency references label %s, which is undefined!" % label)
        source = ops[labels[earlier]]
        (source.then if word == "requires" else source.then_started).append(labels[later])
        ops[labels[later]].blockers += 1

    def operation(self):
        word = self.take("calc", "send", "recv")
        size = self.number() & WRAP64
        if word == "calc":
            return Op(CALC, size, cpu=self.option("cpu") & 0xFF)
        self.take("b")
        self.take("to" if word == "send" else "from")
        peer = self.number(allow_any=word == "recv") & ANY
        tag = self.option("tag", allow_any=True) & ANY
        cpu = self.option("cpu") & 0xFF
        return Op(SEND if word == "send" else RECV, size, peer, tag, cpu, self.option("nic") & 0xFF)


# -------------------------------------------------------------------------------------------- binary (section 2)

def to_binary(ranks):
    """The file that txt2bin would write."""
    records = []
    for ops in ranks:
        roots = [i for i, op in enumerate(ops) if op.blockers == 0]
        body = struct.pack("<II%dI" % len(roots), len(ops), len(roots), *roots)
        appendix = []
        for op in ops:
            first = len(appendix)
            appendix += op.then
            second = len(appendix)
            appendix += op.then_started
            body += NODE.pack(op.blockers, op.kind, op.peer, op.size, op.tag, op.cpu, op.nic,
                              len(op.then), first, len(op.then_started), second)
        records.append(body + struct.pack("<%dI" % len(appendix), *appendix))
    every = [op for ops in ranks for op in ops]
    head = struct.pack("<QIBB", MAGIC, len(ranks), max([op.cpu for op in every], default=0),
                       max([op.nic for op in every], default=0))
    at = len(head) + 16 * len(ranks) - 8
    for record in records:
        head += struct.pack("<QQ", at, at + len(record))
        at += len(record)
    return head + b"".join(records)


def from_binary(data):
    if struct.unpack_from("<Q", data)[0] != MAGIC:
        raise GoalError("bad magic number")
    count = struct.unpack_from("<I", data, 8)[0]
    ranks = []
    for rank in range(count):
        at = 8 + struct.unpack_from("<Q", data, 14 + 16 * rank)[0]
        nodes, roots = struct.unpack_from("<II", data, at)
        at += 8 + 4 * roots
        appendix, ops = at + NODE.size * nodes, []
        for index in range(nodes):
            (blockers, kind, peer, size, tag, cpu, nic, n1, i1, n2, i2) = NODE.unpack_from(data, at + NODE.size * index)
            op = Op(kind, size, peer, tag, cpu, nic)
            op.blockers = blockers
            op.then = list(struct.unpack_from("<%dI" % n1, data, appendix + 4 * i1))
            op.then_started = list(struct.unpack_from("<%dI" % n2, data, appendix + 4 * i2))
            ops.append(op)
        ranks.append(ops)
    return ranks


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:8] == struct.pack("<Q", MAGIC):
        return from_binary(data)
    return TextReader(data.decode()).schedule()


# ------------------------------------------------------------------------------------ ordering rules (section 3.4)

def introsort(items, key):
    """The unstable order of a std::sort with a comparator that only looks at key (section 3.4)."""
    keys = [key(item) for item in items]

    def swap(i, j):
        items[i], items[j] = items[j], items[i]
        keys[i], keys[j] = keys[j], keys[i]

    def partition(low, high):
        middle, candidates = low + (high - low) // 2, (low + 1, low + (high - low) // 2, high - 1)
        median = sorted(keys[i] for i in candidates)[1]
        a, b, c = (keys[i] for i in candidates)
        if a < b:                                   # which of three equal values moves matters: see the decision tree
            pick = middle if b < c else (high - 1 if a < c else low + 1)
        else:
            pick = low + 1 if a < c else (high - 1 if b < c else middle)
        assert keys[pick] == median
        swap(low, pick)
        left, right = low + 1, high
        while True:
            while keys[left] < keys[low]:
                left += 1
            right -= 1
            while keys[low] < keys[right]:
                right -= 1
            if left >= right:
                return left
            swap(left, right)
            left += 1

    pending = [(0, len(items))]
    while pending:
        low, high = pending.pop()
        if high - low > 16:
            cut = partition(low, high)
            pending += [(low, cut), (cut, high)]
    # What remains are runs of at most 16; inserting each element after its equals is a stable sort of the whole.
    order = sorted(range(len(items)), key=lambda i: keys[i])
    items[:] = [items[i] for i in order]


class TimeHeap:
    """Event queue of variant atlahs: a binary heap that compares times only (section 3.4)."""

    def __init__(self):
        self.slots = []

    def __len__(self):
        return len(self.slots)

    def _rise(self, hole, event):
        slots = self.slots
        while hole:
            above = (hole - 1) // 2
            if slots[above].time <= event.time:
                break
            slots[hole] = slots[above]
            hole = above
        slots[hole] = event

    def push(self, event):
        self.slots.append(event)
        self._rise(len(self.slots) - 1, event)

    def pop(self):
        slots = self.slots
        top, moved = slots[0], slots.pop()
        count, hole = len(slots), 0
        if count == 0:
            return top
        while 2 * hole + 2 < count:
            left, right = 2 * hole + 1, 2 * hole + 2
            child = left if slots[right].time > slots[left].time else right
            slots[hole] = slots[child]
            hole = child
        if 2 * hole + 2 == count:                   # the last parent has one child only
            slots[hole] = slots[count - 1]
            hole = count - 1
        self._rise(hole, moved)
        return top


class OrderedQueue:
    """Event queue of variant lgs2023: (time, sequence number)."""

    def __init__(self):
        self.slots = []

    def __len__(self):
        return len(self.slots)

    def push(self, event):
        heapq.heappush(self.slots, (event.time, event.seq, event))

    def pop(self):
        return heapq.heappop(self.slots)[2]


# -------------------------------------------------------------------------------------- simulation (section 3.3)

class Event:
    __slots__ = ("time", "seq", "kind", "host", "peer", "size", "tag", "cpu", "nic", "node", "ready")

    def __init__(self, host, node, op, ready=0):
        self.time, self.seq, self.kind, self.host, self.node, self.ready = 0, 0, op.kind, host, node, ready
        self.peer, self.size, self.tag, self.cpu, self.nic = op.peer, op.size, op.tag, op.cpu, op.nic


class Simulation:
    """What both variants share: clocks, dependency counters, the main loop."""

    def __init__(self, ranks, L=2500, o=1500, g=1000, G=6, O=0, S=65535, stable=False):
        self.ranks, self.stable = ranks, stable
        self.L, self.o, self.g, self.G, self.O, self.S = L, o, g, G, O, S & 0xFFFFFFFF
        every = [op for ops in ranks for op in ops]
        self.cpus = 1 + max([op.cpu for op in every], default=0)
        self.nics = 1 + max([op.nic for op in every], default=0)
        hosts = range(len(ranks))
        self.cpu_free = [[0] * self.cpus for _ in hosts]          # nexto
        self.send_free = [[0] * self.nics for _ in hosts]         # nextgs
        self.recv_free = [[0] * self.nics for _ in hosts]         # nextgr
        self.blockers = [[op.blockers for op in ops] for ops in ranks]
        self.ready_at = [{} for _ in hosts]
        self.released = [[] for _ in hosts]
        self.touched, self.sequence, self.sent_sizes = [], 0, []

    def number(self, event):
        event.seq = self.sequence
        self.sequence += 1

    def touch(self, host):
        if host not in self.touched:
            self.touched.append(host)

    def start(self, host, node):
        self.touch(host)
        for child in self.ranks[host][node].then_started:
            self._unblock(host, child, lambda: 0)

    def finish(self, host, node, when=0):
        self.touch(host)
        ready_at = self.ready_at[host]
        for child in self.ranks[host][node].then:
            ready_at[child] = max(ready_at.get(child, 0), when)
            self._unblock(host, child, lambda child=child: ready_at[child])

    def _unblock(self, host, child, ready):
        self.blockers[host][child] -= 1
        if self.blockers[host][child] == 0:
            self.released[host].append(Event(host, child, self.ranks[host][child], ready()))

    def delay(self, event, earliest):
        """True when the event was pushed back because its resources are busy until earliest."""
        if earliest <= event.time:
            return False
        event.time = earliest
        self.queue.push(event)
        return True

    def issue(self, host, at_zero=False):
        batch, self.released[host] = self.released[host], []
        for event in self.arrange(batch):
            self.number(event)
            event.time = 0 if at_zero else self.issue_time(event)
            self.queue.push(event)

    def run(self):
        handlers = {CALC: self.on_calc, SEND: self.on_send, RECV: self.on_recv, ARRIVAL: self.on_arrival}
        for host, ops in enumerate(self.ranks):
            self.released[host] = [Event(host, i, op) for i, op in enumerate(ops) if op.blockers == 0]
            self.issue(host, at_zero=True)
        while self.queue:
            event = self.queue.pop()
            self.touched = []
            if handlers[event.kind](event) == "abort":
                return {"abort": "receive starts before the arrival it matches (irequires)"}
            for host in self.visit_order():
                self.issue(host)
        return self.report()

    def on_calc(self, event):
        if self.delay(event, self.cpu_free[event.host][event.cpu]):
            return
        done = (event.time + event.size) & WRAP64
        self.cpu_free[event.host][event.cpu] = done
        self.start(event.host, event.node)
        self.finish(event.host, event.node, done)

    def to_arrival(self, event, when):
        """Turn a send event into the arrival of its message."""
        if event.peer >= len(self.ranks):
            raise OutOfRange("rank %d sends to %d of %d" % (event.host, event.peer, len(self.ranks)))
        event.kind, event.host, event.peer = ARRIVAL, event.peer, event.host
        event.time = when & WRAP64
        self.number(event)
        self.queue.push(event)

    def release_sender(self, host, node, cpu, nic, cpu_time, nic_time):
        """A rendezvous send is over: its clocks move to the time of the match."""
        self.finish(host, node, cpu_time)
        self.cpu_free[host][cpu] = max(self.cpu_free[host][cpu], cpu_time)
        self.send_free[host][nic] = max(self.send_free[host][nic], nic_time)

    def result(self):
        return {"ranks": len(self.ranks), "cpus": self.cpus, "nics": self.nics, "events": self.sequence}


class Lgs2023(Simulation):
    """Variant lgs2023. Matching is a linear scan with wildcards; o and bytes are charged at arrival."""

    def __init__(self, ranks, **parameters):
        super().__init__(ranks, **parameters)
        self.queue = OrderedQueue()
        self.posted = [[] for _ in ranks]           # RQ
        self.unexpected = [[] for _ in ranks]       # UQ

    def arrange(self, batch):
        if self.stable:
            return sorted(batch, key=lambda event: event.kind)
        introsort(batch, lambda event: event.kind)
        return batch

    def visit_order(self):
        return sorted(self.touched)

    def issue_time(self, event):
        busy = self.cpu_free[event.host][event.cpu]
        return max(busy, self.send_free[event.host][event.nic]) if event.kind == SEND else busy

    @staticmethod
    def match(queue, event):
        for at, other in enumerate(queue):
            if (event.peer == other.peer or ANY in (event.peer, other.peer)) and \
               (event.tag == other.tag or ANY in (event.tag, other.tag)):
                return queue.pop(at)
        return None

    def on_send(self, event):
        host, now, extra = event.host, event.time, event.size - 1
        if self.delay(event, max(self.cpu_free[host][event.cpu], self.send_free[host][event.nic])):
            return
        self.start(host, event.node)
        self.cpu_free[host][event.cpu] = (now + self.o + extra * self.O) & WRAP64
        self.send_free[host][event.nic] = (now + self.g + extra * self.G) & WRAP64
        self.to_arrival(event, now + self.o + self.L)
        if event.size <= self.S:
            self.finish(host, event.node)

    def on_recv(self, event):
        self.start(event.host, event.node)
        message = self.match(self.unexpected[event.host], event)
        if message is None:
            self.posted[event.host].append(event)
            return
        if event.size > self.S:
            self.release_sender(message.peer, message.node, event.cpu, event.nic, event.time, event.time)
        self.finish(event.host, event.node)

    def on_arrival(self, event):
        host, now = event.host, event.time
        if self.delay(event, max(self.cpu_free[host][event.cpu], self.recv_free[host][event.nic])):
            return
        cpu_bytes, nic_bytes = (event.size - 1) * self.O & WRAP64, (event.size - 1) * self.G & WRAP64
        self.cpu_free[host][event.cpu] = (now + self.o + max(cpu_bytes, nic_bytes)) & WRAP64
        self.recv_free[host][event.nic] = (now + self.g + nic_bytes) & WRAP64
        receive = self.match(self.posted[host], event)
        if receive is None:
            self.unexpected[host].append(event)
            return
        if event.size > self.S:
            self.release_sender(event.peer, event.node, event.cpu, event.nic, now, now)
        self.finish(host, receive.node)

    def report(self):
        result, left = self.result(), []
        for host in range(len(self.ranks)):
            for name, queue in (("unexpected", self.unexpected[host]), ("receive", self.posted[host])):
                if queue:
                    left.append("%s queue on host %d contains %d elements!" % (name, host, len(queue)))
                    left += ["src: %d, tag: %d" % (signed32(item.peer), signed32(item.tag)) for item in queue]
        if left:
            result["left_in_queues"] = left
        else:
            result["host_times"] = [max(clocks) for clocks in self.cpu_free]
        return result


class Atlahs(Simulation):
    """Variant atlahs. Ready times travel along requires edges; queues are exact per (tag, source)."""

    def __init__(self, ranks, **parameters):
        super().__init__(ranks, **parameters)
        self.queue = TimeHeap()
        self.posted = [{} for _ in ranks]
        self.unexpected = [{} for _ in ranks]

    def arrange(self, batch):
        return batch

    def visit_order(self):
        return reversed(self.touched)

    def issue_time(self, event):
        if event.kind == CALC:
            return max(event.ready, self.cpu_free[event.host][event.cpu])
        if event.kind == SEND:
            return max(event.ready, self.send_free[event.host][event.nic])
        return event.ready

    @staticmethod
    def append(queues, event):
        queues.setdefault((event.tag, event.peer), deque()).append(event)

    @staticmethod
    def match(queues, event):
        bucket = queues.get((event.tag, event.peer))
        return bucket.popleft() if bucket else None

    def on_send(self, event):
        host, now = event.host, event.time
        if self.delay(event, max(self.cpu_free[host][event.cpu], self.send_free[host][event.nic])):
            return
        self.start(host, event.node)
        event.size = max(event.size, 1)
        done = (now + self.o + (event.size - 1) * self.O) & WRAP64
        wire = math.floor(float(event.size - 1) * self.G)
        self.cpu_free[host][event.cpu] = done
        self.send_free[host][event.nic] = (now + self.g + wire) & WRAP64
        self.sent_sizes.append(event.size & 0xFFFFFFFF)          # the statistic keeps 32 bits (golden bigsize)
        self.to_arrival(event, done + self.L + wire)
        if event.size <= self.S:
            self.finish(host, event.node, done)

    def on_recv(self, event):
        host = event.host
        self.start(host, event.node)
        event.size = max(event.size, 1)
        message = self.match(self.unexpected[host], event)
        if message is None:
            self.append(self.posted[host], event)
            return None
        if event.time < message.time:
            return "abort"                          # assertion of the reference
        nic_done = max(self.send_free[host][event.nic], event.time) + self.g
        done = nic_done + self.o + (event.size - 1) * self.O
        self.cpu_free[host][event.cpu], self.recv_free[host][event.nic] = done, nic_done
        if event.size > self.S:
            self.release_sender(message.peer, message.node, event.cpu, event.nic, done, nic_done)
        self.finish(host, event.node, done)
        return None

    def on_arrival(self, event):
        host = event.host
        receive = self.match(self.posted[host], event)
        if receive is None:
            self.append(self.unexpected[host], event)
            return
        event.size = max(event.size, 1)
        if self.delay(event, max(self.cpu_free[host][receive.cpu], self.recv_free[host][event.nic])):
            self.append(self.posted[host], receive)          # goes to the tail of its bucket
            return
        nic_done = event.time + self.g
        done = nic_done + self.o + (event.size - 1) * self.O
        self.cpu_free[host][receive.cpu], self.recv_free[host][event.nic] = done, nic_done
        if event.size > self.S:
            self.release_sender(event.peer, event.node, event.cpu, event.nic, done, nic_done)
        self.finish(host, receive.node, done)

    def report(self):
        result = self.result()
        result["host_times"] = [max(clocks) for clocks in self.cpu_free]
        sizes = self.sent_sizes
        result["avg_fct"] = "%f" % (sum(size * 8 / 200 for size in sizes) / len(sizes)) if sizes else "-nan"
        return result


VARIANTS = {"lgs2023": Lgs2023, "atlahs": Atlahs}


def signed32(value):
    return value - (1 << 32) if value >> 31 else value


def simulate(ranks, variant, **parameters):
    """Result of one run; {"abort": reason} where the reference stops with an assertion or has no defined result."""
    try:
        return VARIANTS[variant](ranks, **parameters).run()
    except OutOfRange as error:
        return {"abort": str(error)}


def parse_args_list(variant, words):
    """['-L', '3700', ...] -> keyword arguments; G is an integer in lgs2023, a double in atlahs."""
    values = {}
    for flag, text in zip(words[::2], words[1::2]):
        name = flag.lstrip("-")
        values[name] = float(text) if name == "G" and variant == "atlahs" else int(text)
    return values


# --------------------------------------------------------------------------------------------- random, verification

SETS = [[], ["-L", "1000", "-o", "100", "-g", "50", "-G", "1", "-S", "1024"],
        ["-L", "3700", "-o", "200", "-g", "5", "-G", "2", "-O", "1"], ["-S", "1"],
        ["-L", "10", "-o", "3", "-g", "4000", "-G", "0", "-S", "70000"]]
FRACTIONAL = ["-L", "3700", "-o", "200", "-g", "5", "-G", "0.04", "-S", "0"]


def random_text(rng, ranks, ops):
    """A schedule without dependency deadlock: every edge and every message points forward in one global order."""
    lines, counts = [[] for _ in range(ranks)], [0] * ranks
    cpus, nics, tags = rng.choice([1, 1, 2, 4]), rng.choice([1, 1, 2]), rng.choice([3, 1000])

    def add(rank, text):
        counts[rank] += 1
        lines[rank].append("l%d: %s" % (counts[rank], text))
        for _ in range(rng.choice([0, 1, 1, 2])):
            if counts[rank] > 1:
                word = "irequires" if rng.random() < 0.1 else "requires"
                lines[rank].append("l%d %s l%d" % (counts[rank], word, rng.randint(1, counts[rank] - 1)))

    def place():
        text = " cpu %d" % rng.randrange(cpus) if rng.random() < 0.7 else ""
        return text + (" nic %d" % rng.randrange(nics) if rng.random() < 0.5 else "")

    for _ in range(ops):
        if ranks == 1 or rng.random() < 0.4:
            add(rng.randrange(ranks), "calc %d cpu %d" % (rng.choice([0, 1, 50, rng.randrange(20000)]), rng.randrange(cpus)))
            continue
        source, target = rng.sample(range(ranks), 2)
        size = rng.choice([0, 1, 8, 1000, 4096, 65535, 65536, rng.randrange(200000)])
        tag = rng.randrange(tags)
        add(source, "send %db to %d tag %d%s" % (size, target, tag, place()))
        wild = rng.random() < 0.02
        add(target, "recv %db from %s tag %s%s" % (size, -1 if wild else source, -1 if wild else tag, place()))
    body = "".join("\nrank %d {\n%s}\n" % (rank, "".join(line + "\n" for line in lines[rank])) for rank in range(ranks))
    return "num_ranks %d\n" % ranks + body


def expected_entry(name, text):
    ranks = TextReader(text).schedule()
    binary, runs = to_binary(ranks), []
    for variant in ("lgs2023", "atlahs"):
        for words in SETS + ([FRACTIONAL] if variant == "atlahs" else []):
            result = simulate(ranks, variant, **parse_args_list(variant, words))
            runs.append({"variant": variant, "args": words, **({"rc": -6} if result.get("abort") else result)})
    return {"goal": name, "bin_size": len(binary), "bin_sha256": hashlib.sha256(binary).hexdigest(), "runs": runs}


def write_random(seed, out, ranks, ops):
    rng = random.Random(seed)
    text = random_text(rng, ranks or rng.randint(1, 9), ops or rng.randint(4, 60))
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "case.goal"), "w") as file:
        file.write(text)
    with open(os.path.join(out, "case.bin"), "wb") as file:
        file.write(to_binary(TextReader(text).schedule()))
    with open(os.path.join(out, "expected.json"), "w") as file:
        json.dump([expected_entry("case.goal", text)], file, indent=1)


def find_goal(folder, name):
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.exists(path):
            return path
    return None


def verify(expected, folder):
    """Counts of equal and different runs, files, rejections."""
    counts = {"runs": [0, 0], "binaries": [0, 0], "rejected": [0, 0], "missing": 0}
    for entry in json.load(open(expected)):
        path = find_goal(folder, entry["goal"])
        if path is None:
            counts["missing"] += 1
            continue
        try:
            ranks = load(path)
        except GoalError:
            counts["rejected"]["txt2bin_rc" not in entry] += 1
            continue
        if "txt2bin_rc" in entry:
            counts["rejected"][1] += 1
            print("accepted, rejected by the reference:", entry["goal"])
            continue
        if "bin_sha256" in entry:
            counts["binaries"][hashlib.sha256(to_binary(ranks)).hexdigest() != entry["bin_sha256"]] += 1
        for run in entry.get("runs", []):
            result = simulate(ranks, run["variant"], **parse_args_list(run["variant"], run["args"]))
            keys = ("ranks", "cpus", "nics", "events", "host_times", "left_in_queues", "avg_fct")
            same = bool(result.get("abort")) if "rc" in run else all(result.get(k) == run.get(k) for k in keys if k in run)
            counts["runs"][not same] += 1
            if not same:
                print("differs:", entry["goal"], run["variant"], run["args"])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-f", "--filename")
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="lgs2023")
    for name in "LogGOS":
        parser.add_argument("-" + name)
    parser.add_argument("--stable", action="store_true", help="lgs2023 with a stable order of equal operations")
    parser.add_argument("--to-binary", metavar="OUT")
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--out", default="loggops_case")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--ops", type=int)
    parser.add_argument("--verify", nargs=2, metavar=("EXPECTED", "GOALDIR"))
    args = parser.parse_args()
    if args.random is not None:
        return write_random(args.random, args.out, args.ranks, args.ops)
    if args.verify:
        counts = verify(*args.verify)
        print(json.dumps(counts))
        return 1 if any(counts[k][1] for k in ("runs", "binaries", "rejected")) else 0
    if not args.filename:
        parser.error("-f is required")
    ranks = load(args.filename)
    if args.to_binary:
        with open(args.to_binary, "wb") as file:
            file.write(to_binary(ranks))
        return 0
    words = [w for name in "LogGOS" if getattr(args, name) is not None for w in ("-" + name, getattr(args, name))]
    print(json.dumps(simulate(ranks, args.variant, stable=args.stable, **parse_args_list(args.variant, words))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
