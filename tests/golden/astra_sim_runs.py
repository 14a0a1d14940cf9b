# SPDX-License-Identifier: Apache-2.0
"""Running the simulator under the old programs' names, and comparing what it prints with expected figures.

A case is a dict with the paths `system`, `network`, `memory` and perhaps `group`, relative to the folder of the
inputs, the name of its `workload`, and perhaps `args`, further options.  Expected figures are collapsed: one value
for all ranks, a list by rank, or an object with the ranks that have one."""

import pathlib
import re
import shutil
import subprocess

PROGRAMS = {"unaware": "AstraSim_Analytical_Congestion_Unaware", "aware": "AstraSim_Analytical_Congestion_Aware"}
LINE = re.compile(r"\[[-\d]+ [:.\d]+\] \[([^]]+)\] \[(\w+)\] (.*)")
FINISHED = re.compile(r"sys\[(\d+)\] finished, (\d+) cycles, exposed communication (\d+) cycles\.")
STATISTIC = re.compile(r"sys\[(\d+)\], ([^:]+): ([\d.]+)%?")
PEAK = re.compile(r"sys\[(\d+)\] peak memory usage: (.+)")


class Figures:
    """What one run printed."""

    def __init__(self, text):
        self.cycles, self.exposed, self.order = {}, {}, []
        self.stats, self.peak_mem, self.messages = {}, {}, []
        for line in text.splitlines():
            match = LINE.fullmatch(line)
            if match:
                self._read(*match.groups())

    def _read(self, logger, level, text):
        if level in ("warning", "error", "critical") and text != "Exiting":
            self._note(f"[{logger}] [{level}] {text}")
        elif match := FINISHED.fullmatch(text):
            rank = int(match[1])
            self.order.append(rank)
            self.cycles[rank], self.exposed[rank] = int(match[2]), int(match[3])
        elif match := PEAK.fullmatch(text):
            self.peak_mem[int(match[1])] = match[2]
        elif logger == "statistics" and (match := STATISTIC.fullmatch(text)):
            value = match[3] if "." in match[3] else int(match[3])
            self.stats.setdefault(match[2], {})[int(match[1])] = value

    def _note(self, message):
        if message not in self.messages:
            self.messages.append(message)


def spread(value, ranks):
    """{rank: value} of a collapsed figure."""
    if isinstance(value, dict):
        return {int(rank): one for rank, one in value.items()}
    if isinstance(value, list):
        return dict(enumerate(value))
    return {rank: value for rank in ranks}


def first_difference(what, want, got):
    """Words, or '' when they are equal."""
    for rank in sorted(want.keys() | got.keys()):
        if want.get(rank) != got.get(rank):
            return f"{what} of rank {rank}: expected {want.get(rank)}, got {got.get(rank)}"
    return ""


def compare_figures(expect, npus, got):
    """The first difference in words, or ''.  Only what `expect` has is compared."""
    ranks = range(npus)
    cycles = spread(expect["cycles"], ranks) if "cycles" in expect else {}
    words = first_difference("cycles", cycles, got.cycles)
    if not words and "exposed" in expect:
        words = first_difference("exposed communication", spread(expect["exposed"], ranks), got.exposed)
    order = expect.get("order")
    if not words and order and got.order != (sorted(cycles) if order == "ascending" else order):
        words = f"order: expected {order}, got {got.order}"
    if not words and "stats" in expect:
        for key in sorted(expect["stats"].keys() | got.stats.keys()):
            want = spread(expect["stats"].get(key, {}), ranks)
            words = words or first_difference(key, want, got.stats.get(key, {}))
    if not words and "peak_mem" in expect:
        words = first_difference("peak memory usage", spread(expect["peak_mem"], ranks), got.peak_mem)
    return words


def run(inputs, case, backend, place):
    """(status, Figures, stderr, the folder it ran in).  A folder of its own, because runs leave files."""
    folder = pathlib.Path(place)
    folder.mkdir(parents=True)
    for part in pathlib.Path(inputs).iterdir():
        if part.is_dir():
            (folder / part.name).symlink_to(part.resolve())
    options = {"workload": f"workloads/{case['workload']}/w", "system": case["system"], "network": case["network"],
               "remote-memory": case["memory"], "comm-group": case.get("group")}
    command = [PROGRAMS[backend]]
    command += [f"--{name}-configuration={path}" for name, path in options.items() if path]
    command += [f"--{name}={value}" for name, value in case.get("args", {}).items()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, Figures(done.stdout), done.stderr, folder


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)


def print_tap(results):
    """results: (name, words or '').  The exit status of the test program."""
    print(f"1..{len(results)}")
    for number, (name, words) in enumerate(results, 1):
        print(f"{'not ' if words else ''}ok {number} - {name}")
    failed = [f"{name}: {words.strip()}" for name, words in results if words]
    for words in failed:  # at the end, where a reader of a long list finds them
        print("# " + words.replace("\n", "\n# "))
    return 1 if failed else 0
