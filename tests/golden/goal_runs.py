# SPDX-License-Identifier: Apache-2.0
"""What the tests of GOAL schedules and of LogGOPS share: running the old names, judging what they print, and schedules
made by rule."""

import hashlib
import json
import pathlib
import subprocess

from places import GOLDEN, ORACLE, ROOT


def run(words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)


def print_tap(results):
    """results: (name, what is wrong or "")."""
    for number, (name, words) in enumerate(results, 1):
        print(f"{'not ok' if words else 'ok'} {number} - {name}")
        for line in str(words).splitlines():
            print(f"# {line}")
    print(f"1..{len(results)}")
    return 1 if any(words for _, words in results) else 0


def judge_binary(goal, entry, binary):
    """The binary file of a schedule against its hash, and the way back through text."""
    done = run(["txt2bin", "-i", goal, "-o", binary])
    if done.returncode:
        return done.stderr
    if hashlib.sha256(pathlib.Path(binary).read_bytes()).hexdigest() != entry["bin_sha256"]:
        return "another binary file"
    again, twice = binary + ".goal", binary + ".again"
    for words in (["bin2txt", "-i", binary, "-o", again], ["txt2bin", "-i", again, "-o", twice]):
        done = run(words)
        if done.returncode:
            return done.stderr
    same = pathlib.Path(twice).read_bytes() == pathlib.Path(binary).read_bytes()
    return "" if same else "another binary file after the way through text"


def judge_run(binary, wanted):
    done = run(["LogGOPSim", "-f", binary, "--compat", wanted["variant"], "--json", *wanted["args"]])
    if "rc" in wanted:                                       # an assertion of the reference: an error here
        return "" if done.returncode == 3 else f"exit status {done.returncode}, expected 3"
    if done.returncode:
        return done.stderr
    got = json.loads(done.stdout)
    keys = {"events": "events", "rank_finished_ns": "host_times", "left_in_queues": "left_in_queues",
            "average_fct": "avg_fct", "ranks": "ranks", "cpus": "cpus", "nics": "nics"}
    for ours, theirs in keys.items():
        if theirs in wanted and got.get(ours) != wanted[theirs]:
            return f"{ours}: {got.get(ours)}, expected {wanted[theirs]}"
    return ""


def judge_entry(goal, entry, binary="case.bin"):
    """(name, words) for one schedule: its binary form, then all of its runs."""
    results = [(entry["goal"] + ", binary", judge_binary(goal, entry, binary))]
    wrong = []
    for wanted in entry["runs"]:
        words = judge_run(binary, wanted)
        if words:
            wrong.append(f"{wanted['variant']} {' '.join(wanted['args'])}: {words}")
    results.append((f"{entry['goal']}, {len(entry['runs'])} runs", "\n".join(wrong)))
    return results


# ---- schedules by rule, in the words of the reference's generator (goal.md 4)

class Rank:
    def __init__(self):
        self.lines, self.count = [], 0

    def op(self, text):
        self.count += 1
        self.lines.append(f"l{self.count}: {text}")
        return self.count

    def need(self, later, earlier):
        if earlier:
            self.lines.append(f"l{later} requires l{earlier}")


def dissemination(rank, n, r, size):
    before, distance = 0, 1
    while distance < n:
        send = rank.op(f"send {size}b to {(r + distance) % n} tag 0")
        rank.need(send, before)
        before = rank.op(f"recv {size}b from {(r - distance) % n} tag 0")
        distance *= 2


def linear_alltoall(rank, n, r, size):
    for step in range(1, n):
        rank.op(f"send {size}b to {(r + step) % n} tag 0")
        rank.op(f"recv {size}b from {(r - step) % n} tag 0")


def allreduce_ring(rank, n, r, size):
    before = 0
    for _ in range(2 * (n - 1)):
        send = rank.op(f"send {size // n}b to {(r + 1) % n} tag 0")
        rank.need(send, before)
        before = rank.op(f"recv {size // n}b from {(r - 1) % n} tag 0")


PATTERNS = {"dissemination": dissemination, "linear_alltoall": linear_alltoall, "allreduce_ring": allreduce_ring}


def schedule(pattern, n, size):
    parts = [f"num_ranks {n}\n"]
    for r in range(n):
        rank = Rank()
        PATTERNS[pattern](rank, n, r, size)
        parts.append(f"\nrank {r} {{\n" + "".join(line + "\n" for line in rank.lines) + "}\n")
    return "".join(parts)
