# SPDX-License-Identifier: Apache-2.0
"""orrery.run and what comes out of it; models in Python; Ctrl-C, threads, processes."""

import concurrent.futures
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import orrery


def ring(ranks=4, size=1 << 20):
    """Each rank computes for 5 us and sends to the next one."""
    traces = []
    for rank in range(ranks):
        t = orrery.Trace()
        a = t.compute("work", duration_us=5)
        t.send((rank + 1) % ranks, size, src=rank, tag=1, deps=[a])
        t.recv((rank - 1) % ranks, size, dst=rank, tag=1, deps=[a])
        traces.append(t)
    return orrery.Set(traces)


def reduces(ranks=4, size=1 << 20, count=1):
    t = orrery.Trace()
    for _ in range(count):
        t.collective("ALL_REDUCE", size)
    return orrery.Set([t] * ranks)


def step():
    return orrery.stage("gpt2", tp=2, pp=2, dp=2, batch=8)


def test_a_run_equals_the_program(tmp_path):
    s = step()
    s.save(tmp_path / "s.orr")
    r = orrery.run(tmp_path / "s.orr", machine="dgx-h100")
    out = subprocess.run([sys.executable, "-m", "orrery", "run", tmp_path / "s.orr", "--machine", "dgx-h100", "--json"],
                         capture_output=True, text=True, check=True)
    theirs = json.loads(out.stdout)
    assert theirs["simulated_ns"] == r.time_ns == orrery.run(s, machine="dgx-h100").time_ns
    assert r.summary["per_rank"] == theirs["per_rank"]
    assert r.ranks["finished_ns"].max() == r.time_ns and len(r.ranks["comm_ns"]) == 8


def test_results_fit_together(tmp_path):
    r = orrery.run(step(), machine="dgx-h100")
    path = r.critical_path
    assert path.total_ns == r.time_ns == sum(s["to_ns"] - s["from_ns"] for s in path)
    assert path.steps[0]["from_ns"] == 0 and len(path.frame()) == len(path)
    t = r.timeline
    assert len(t) == r.set.node_count and t.column("end_ps").max() == r.time_ns * 1000
    assert set(t.column("kind")) >= {"compute", "collective"} and t.column("start_ns")[0] >= 0
    frame = t.frame()
    assert frame["end_ns"].max() == r.time_ns and set(frame["rank"]) == set(range(8))
    assert r.rank_count == 8 and r.ranks_simulated <= 8 and r.messages > 0 and r.events > 0
    assert "run time" in r._repr_html_() and "ms on 8 ranks" in repr(r)
    r.report(tmp_path / "x.html", title="a step")
    assert b"<title>" in (tmp_path / "x.html").read_bytes()
    t.write_chrome(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    r.write("csv", tmp_path / "x.csv")
    assert len((tmp_path / "x.csv").read_text().splitlines()) >= 9
    assert len(r.frame()) == 8
    assert r.facts["runs"]


def test_without_a_machine_there_is_one_switch():
    # 5 us, then 1 MiB at 50 GiB/s through a switch (2 hops of 500 ns)
    r = orrery.run(ring(), network="unaware")
    assert r.time_ns == pytest.approx(5000 + 2 * 500 + (1 << 20) / (50 * (1 << 30)) * 1e9, abs=20)


def test_a_network_in_python():
    seen = []

    def slow(src, dst, size, now_ns):
        seen.append((src, dst, size, now_ns))
        return 1000 * (src + 1)
    r = orrery.run(ring(), network=slow)
    assert r.time_ns == pytest.approx(5000 + 4000, abs=20)
    assert sorted(seen) == [(i, (i + 1) % 4, 1 << 20, pytest.approx(5000, abs=20)) for i in range(4)]
    assert "slow" in r.made_from


def test_a_compute_model_in_python():
    def model(node):
        assert node.type_name == "COMP_NODE" and node.get("num_ops") is None
        return 42_000.5
    base = orrery.run(ring(), network=lambda *_: 0).time_ns
    assert orrery.run(ring(), network=lambda *_: 0, compute=model).time_ns - base == pytest.approx(42_001 - 5000, abs=1)
    assert orrery.run(ring(), network=lambda *_: 0, compute=lambda node: None).time_ns == base


def test_a_collective_in_python():
    def direct(kind, member, members, size, root):
        assert (kind, members, size) == ("ALL_REDUCE", 4, 1 << 20)
        others = [m for m in range(members) if m != member]
        for other in others:
            yield "send", other, size
        for other in others:
            yield "receive", other, size
        yield "reduce", size
    messages = []
    r = orrery.run(reduces(), collectives={"all-reduce": direct},
                   network=lambda src, dst, size, now: messages.append((src, dst, size)) or 700)
    assert sorted(messages) == [(a, b, 1 << 20) for a in range(4) for b in range(4) if a != b]
    assert r.time_ns > 700


@pytest.mark.parametrize("kind", ["BROADCAST", "REDUCE", "GATHER", "SCATTER"])
def test_a_collective_with_a_root_in_python(kind):
    def star(said, member, members, size, root):
        assert (said, members, root) == (kind, 4, 2)
        down = kind in ("BROADCAST", "SCATTER")
        others = [m for m in range(members) if m != root]
        if member == root:
            for other in others:
                yield ("send" if down else "receive"), other, size
        else:
            yield ("receive" if down else "send"), root, size
    t = orrery.Trace()
    down = kind in ("BROADCAST", "SCATTER")
    t.collective(kind, 1 << 20, attrs={"comm_src" if down else "comm_dst": 2})
    messages = []
    r = orrery.run([t] * 4, collectives={kind.lower(): star},
                   network=lambda src, dst, size, now: messages.append((src, dst)) or 700)
    assert sorted(messages) == sorted((2, m) if down else (m, 2) for m in (0, 1, 3))
    assert r.time_ns >= 700


def test_a_barrier_in_python():
    def star(kind, member, members, size, root):
        others = [m for m in range(members) if m != root]
        if member == root:
            for other in others:
                yield ("receive" if kind == "REDUCE" else "send"), other, 8
        else:
            yield ("send" if kind == "REDUCE" else "receive"), root, 8
    t = orrery.Trace()
    t.collective("BARRIER", 8)
    messages = []
    orrery.run([t] * 3, collectives={"barrier": star}, network=lambda src, dst, *_: messages.append((src, dst)) or 5)
    assert sorted(messages) == [(0, 1), (0, 2), (1, 0), (2, 0)]


GOAL = "num_ranks 2\nrank 0 {\nl1: calc 1000\nl2: send 1048576b to 1 tag 5\nl2 requires l1\n}\n" \
       "rank 1 {\nl1: recv 1048576b from 0 tag 5\n}\n"


def program(*words):
    out = subprocess.run([sys.executable, "-m", "orrery", *map(str, words), "--json"], capture_output=True, text=True,
                         check=True)
    return json.loads(out.stdout)


def test_a_schedule_runs_as_in_the_program(tmp_path):
    path = tmp_path / "p.goal"
    path.write_text(GOAL)
    for network in ("unaware", "aware", "packet"):
        assert orrery.run(path, network=network).time_ns == program("run", path, "--network", network)["simulated_ns"]
    assert orrery.run(path, machine="dgx-h100").time_ns == program("run", path, "--machine", "dgx-h100",
                                                                   "--network", "fluid")["simulated_ns"]
    assert orrery.run(path).time_ns == program("run", path)["finished_ns"]
    said = program("run", path, "--network", "loggops", "--loggops", "L=3700,o=200")
    r = orrery.run(path, network="loggops", loggops="L=3700,o=200")
    assert r.time_ns == said["finished_ns"] and r.set is None and r.rank_count == 2
    assert r.summary["rank_finished_ns"] == said["rank_finished_ns"]
    unnamed = tmp_path / "schedule"
    unnamed.write_text(GOAL)
    assert orrery.run(unnamed, network="loggops", loggops="L=3700,o=200").time_ns == r.time_ns
    made = orrery.convert(path, "goal")
    assert len(made) == 2 and made.node_count == 3
    path.write_text(GOAL.replace("send", "sned"))
    with pytest.raises(orrery.Error, match="p.goal") as caught:
        orrery.run(path)
    assert caught.value.line == 4
    with pytest.raises(orrery.Error, match="Q=1"):
        orrery.run(unnamed, network="loggops", loggops="Q=1")


def test_traces_run_under_loggops(tmp_path):
    s = step()
    s.save(tmp_path / "s.orr")
    said = program("run", tmp_path / "s.orr", "--network", "loggops")
    assert orrery.run(tmp_path / "s.orr", network="loggops").time_ns == said["finished_ns"]
    assert orrery.run(s, network="loggops").time_ns == said["finished_ns"]


def test_flows_run_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flows.txt").write_text("2\n0 2 3 100 1000000 0\n1 2 3 100 1000000 0\n")
    (tmp_path / "star.txt").write_text("4 1 3\n3\n3 0 100Gbps 1us 0\n3 1 100Gbps 1us 0\n3 2 100Gbps 1us 0\n")
    (tmp_path / "config.txt").write_text("CC_MODE 0 ENABLE_QCN 0 RATE_AI 1Gbps RATE_HAI 1Gbps L2_CHUNK_SIZE 4000 "
                                         "TOPOLOGY_FILE star.txt\n")
    said = program("run", "--flows=flows.txt", "-t", "config.txt")
    r = orrery.run(flows="flows.txt", topology="config.txt")
    assert r.summary["flows"] == said["flows"] and r.set is None and r.time_ns > 160_000
    with pytest.raises(orrery.Error, match="not both"):
        orrery.run(ring(), flows="flows.txt", topology="config.txt")
    with pytest.raises(orrery.Error, match="needs traces"):
        orrery.run()
    (tmp_path / "flows.txt").write_text("2\n0 2 3\n")
    with pytest.raises(orrery.Error, match="flows.txt"):
        orrery.run(flows="flows.txt", topology="config.txt")


@pytest.mark.parametrize("what", ["network", "compute", "collective"])
def test_an_exception_of_a_model_ends_the_run_and_is_raised(what):
    class Mine(Exception):
        pass

    def raises(*_):
        raise Mine("no")
    options = {"network": {"network": raises}, "compute": {"compute": raises},
               "collective": {"collectives": {"all-reduce": raises}}}[what]
    with pytest.raises(Mine):
        orrery.run(reduces() if what == "collective" else ring(), **options)


def test_models_that_answer_nonsense():
    with pytest.raises(ValueError, match="nanoseconds"):
        orrery.run(ring(), network=lambda *_: -1)
    with pytest.raises(ValueError, match="nanoseconds"):
        orrery.run(ring(), compute=lambda node: float("nan"))
    with pytest.raises(TypeError):
        orrery.run(ring(), network=lambda *_: "soon")

    def odd(kind, member, members, size, root):
        yield "shout", 1, 2
    with pytest.raises(ValueError, match="expected"):
        orrery.run(reduces(), collectives={"all-reduce": odd})

    def to_itself(kind, member, members, size, root):
        yield "send", member, 8
    with pytest.raises(ValueError, match="cannot send"):
        orrery.run(reduces(), collectives={"all-reduce": to_itself})


@pytest.mark.parametrize("network", ["fluid", "unaware", "aware", "packet", "loggops"])
def test_limits_end_a_run_with_what_is_known(network):
    work = reduces(size=4096, count=4000)
    whole = orrery.run(work, network=network, progress=False, timeline=False)
    for limit, words in (({"max_events": 50}, "the limit of 50 events is reached"),
                         ({"max_memory": "1KiB"}, "the limit of 1.00 KiB of memory is reached")):
        with pytest.raises(orrery.Error, match=words) as caught:
            orrery.run(work, network=network, progress=False, timeline=False, fold="off", **limit)
        known = caught.value.result
        assert caught.value.code == "stopped" and known.time_ns < whole.time_ns
        assert known.summary["status"] == "interrupted"
    roomy = orrery.run(work, network=network, progress=False, timeline=False, max_events=1 << 40, max_memory="1TiB", max_seconds=3600)
    assert roomy.time_ns == whole.time_ns
    for wrong in ({"max_seconds": -1}, {"max_seconds": float("nan")}, {"max_events": -1}, {"max_memory": "much"}):
        with pytest.raises((orrery.Error, OverflowError, ValueError)):
            orrery.run(work, network=network, progress=False, **wrong)


def test_a_limit_of_time_holds_over_many_looks():
    # Congestion control never repeats itself, so this runs for minutes.
    began = time.monotonic()
    with pytest.raises(orrery.Error, match="the limit of 0.35 s is reached"):
        orrery.run(reduces(size=1 << 36), network="packet", packet_keys="APPROX 0", progress=False, max_seconds=0.35)
    assert time.monotonic() - began < 30


def test_a_run_that_stalls_says_who_waits():
    t = orrery.Trace()
    t.recv(1, 8, dst=0, tag=5)
    other = orrery.Trace()
    other.compute("work", duration_us=1)
    with pytest.raises(orrery.Error) as caught:
        orrery.run([t, other])
    assert caught.value.stall and any("rank 0" in line for line in caught.value.stall)


def test_steps_in_a_row_are_those_of_the_program(tmp_path):
    s = reduces(8)
    s.save(tmp_path / "s.orr")
    r = orrery.run(s, machine="dgx-h100", network="unaware", steps=20)
    theirs = json.loads(subprocess.run([sys.executable, "-m", "orrery", "run", tmp_path / "s.orr", "--machine", "dgx-h100",
                                        "-n", "unaware", "--steps", "20", "--json"], check=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)["steps"]
    assert r.steps == {name: theirs[name] for name in r.steps}
    assert r.steps["asked"] == 20 and r.steps["simulated"] < 20 and r.steps["total_ns"] > r.steps["first_ns"]
    one = orrery.run(s, machine="dgx-h100", network="unaware").steps
    assert one["asked"] == one["simulated"] == 1 and one["total_ns"] == one["last_ns"] == r.steps["first_ns"]
    for wrong in (0, -1, 1000001):
        with pytest.raises(orrery.Error, match="steps"):
            orrery.run(s, steps=wrong)
    with pytest.raises(orrery.Error, match="steps"):
        orrery.run(s, network="loggops", steps=2)


def test_wrong_options_raise():
    s = reduces()
    for options, words in (({"machine": "no-such-machine"}, "no-such-machine"), ({"network": "nothing"}, "nothing"),
                           ({"hardware": "abacus"}, "abacus"), ({"fold": "maybe"}, "fold is"),
                           ({"system": "none.json"}, "none.json")):
        with pytest.raises(orrery.Error, match=words):
            orrery.run(s, **options)
    with pytest.raises(TypeError):
        orrery.run(s, nonsense=1)
    with pytest.raises(orrery.Error, match="what_if"):
        orrery.run(s).report("x.html", what_if="never")
    with pytest.raises(orrery.Error):
        orrery.run(s, timeline=False).critical_path


def busy():
    """A run of ten seconds and more, which every test ends early: nothing is folded, all messages are events."""
    return reduces(ranks=64, size=1 << 30, count=4000)


def test_progress_is_reported_and_may_end_the_run():
    calls = []

    class Enough(Exception):
        pass

    def progress(now_ps, finished, ranks, events):
        calls.append((now_ps, finished, ranks, events))
        if len(calls) == 4:
            raise Enough
    with pytest.raises(Enough):
        orrery.run(busy(), network="unaware", fold="off", timeline=False, progress=progress)
    assert [c[2] for c in calls] == [64] * 4
    assert calls[0][3] <= calls[1][3] < calls[3][3]


INTERRUPTED = """
import os, signal, sys, threading, orrery
t = orrery.Trace()
for _ in range(4000):
    t.collective("ALL_REDUCE", 1 << 30)
s = orrery.Set([t] * 64)
threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    orrery.run(s, network="unaware", fold="off", timeline=False, progress=False)
except KeyboardInterrupt:
    sys.exit(7)
"""


def test_ctrl_c_ends_a_run():
    assert subprocess.run([sys.executable, "-c", INTERRUPTED]).returncode == 7


def test_the_gil_is_free_while_it_runs():
    ticks = []
    over = threading.Event()

    def tick():
        while not over.wait(0.01):
            ticks.append(time.monotonic())

    class Enough(Exception):
        pass

    def progress(*_):
        progress.calls += 1
        if progress.calls > 6:
            raise Enough
    progress.calls = 0
    thread = threading.Thread(target=tick, daemon=True)  # a failure must not keep it
    thread.start()
    with pytest.raises(Enough):
        orrery.run(busy(), network="unaware", fold="off", timeline=False, progress=progress)
    over.set()
    thread.join()
    assert len(ticks) > 12  # half a second of runs, and ten looks of ours for each of theirs


def test_threads_share_a_set():
    s = step()
    want = orrery.run(s, machine="dgx-h100").time_ns

    def work(i):
        assert sum(1 for n in s[i % 8]) == len(s[i % 8])
        assert s[i % 8].columns["id"].size == len(s[i % 8])
        return orrery.run(s, machine="dgx-h100", progress=False).time_ns
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(12))) == {want}


def test_closing_under_a_running_thread_is_safe(tmp_path):
    step().save(tmp_path / "s.orr")
    s = orrery.open(tmp_path / "s.orr")
    trace = s[1]
    nodes = iter(trace)
    first = next(nodes)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(orrery.run, s, "dgx-h100")
        time.sleep(0.01)
        s.close()
        try:
            assert future.result().time_ns > 0
        except orrery.Error as e:  # it had not begun
            assert "closed" in str(e)
    assert first.name and sum(1 for _ in nodes) == len(trace) - 1


def child(queue, s):
    queue.put((orrery.run(s, machine="dgx-h100", progress=False).time_ns, len(s[0])))


def test_forked_processes_go_on_with_what_was_open():
    s = step()
    want = orrery.run(s, machine="dgx-h100").time_ns, len(s[0])
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=child, args=(queue, s)) for _ in range(2)]
    for c in children:
        c.start()
    assert [queue.get(timeout=60) for _ in children] == [want] * 2
    for c in children:
        c.join()
    assert [c.exitcode for c in children] == [0, 0] and len(s[0]) == want[1]


def test_a_result_keeps_what_it_needs():
    r = orrery.run(step(), machine="dgx-h100")
    t = r.timeline
    want = r.time_ns
    column = t.column("end_ps")
    del r, t
    assert column.max() == want * 1000


def test_stage_says_whether_it_fits():
    s = orrery.stage("llama-3-8b", tp=2, dp=2, device_memory="80GB")
    assert s.facts["ranks"] == 4 == len(s) and s.facts["parameters"] == 8_030_261_248
    assert [m["fits"] for m in s.facts["memory"]] == [m["peak_bytes"] <= 80e9 for m in s.facts["memory"]]
    assert len(orrery.stage("gpt2", layers=3)[0]) < len(orrery.stage("gpt2", layers=6)[0])
    for options, words in (({"dtype": "int3"}, "dtype"), ({"tp": 5}, ""), ({"recompute": "some"}, "recompute"),
                           ({"software": "abacus"}, "megatron"), ({"device_memory": "much"}, "size"),
                           ({"machine": "no-such"}, "no-such")):
        with pytest.raises(orrery.Error, match=words):
            orrery.stage("gpt2", **options)
    with pytest.raises(orrery.Error, match="no-such-model"):
        orrery.stage("no-such-model")
    with pytest.raises(OverflowError):
        orrery.stage("gpt2", tp=-1)


def test_names():
    assert "dgx-h100" in orrery.machines() and "llama-3-70b" in orrery.models()
