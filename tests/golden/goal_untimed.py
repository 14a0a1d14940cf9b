# SPDX-License-Identifier: Apache-2.0
"""Runs a GOAL schedule without a clock: does every operation come to its end?

Independent of the simulator, and stricter: a send ends only when its receive is there, so a schedule that comes through here
comes through with any eager limit."""

import collections
import re

LINE = re.compile(r"(l\d+): (calc|send|recv) (\d+)(?:b (?:to|from) (\d+) tag (\d+))?")


class Rank:
    def __init__(self):
        self.ops, self.labels, self.needs, self.then = [], {}, [], []

    def add(self, found):
        self.labels[found[1]] = len(self.ops)
        self.ops.append((found[2], int(found[3]), int(found[4] or 0), int(found[5] or 0)))
        self.needs.append(0)
        self.then.append([])

    def require(self, later, earlier):
        self.needs[self.labels[later]] += 1
        self.then[self.labels[earlier]].append(self.labels[later])


def read(path):
    ranks = []
    with open(path, encoding="ascii") as file:
        assert file.readline().startswith("num_ranks ")
        for line in file:
            found = LINE.match(line)
            if found:
                ranks[-1].add(found)
            elif line.startswith("rank "):
                ranks.append(Rank())
            elif " requires " in line:
                later, _, earlier = line.split()
                ranks[-1].require(later, earlier)
    return ranks


def fault_of(path):
    """"" when all operations end, else words."""
    ranks = read(path)
    waiting = {"send": collections.defaultdict(collections.deque), "recv": collections.defaultdict(collections.deque)}
    ready = collections.deque((r, i) for r, rank in enumerate(ranks) for i, needs in enumerate(rank.needs) if needs == 0)
    ended = 0

    def end(r, i):
        nonlocal ended
        ended += 1
        for successor in ranks[r].then[i]:
            ranks[r].needs[successor] -= 1
            if ranks[r].needs[successor] == 0:
                ready.append((r, successor))

    while ready:
        r, i = ready.popleft()
        kind, size, peer, tag = ranks[r].ops[i]
        if kind == "calc":
            end(r, i)
            continue
        key = (r, peer, tag) if kind == "send" else (peer, r, tag)
        other = waiting["recv" if kind == "send" else "send"][key]
        if not other:
            waiting[kind][key].append((r, i))
            continue
        partner, its = other.popleft()
        if ranks[partner].ops[its][1] != size:
            return f"rank {r} and {partner} have messages of {size} and {ranks[partner].ops[its][1]} bytes, tag {tag}"
        end(r, i)
        end(partner, its)
    total = sum(len(rank.ops) for rank in ranks)
    return "" if ended == total else f"{total - ended} of {total} operations never end"
