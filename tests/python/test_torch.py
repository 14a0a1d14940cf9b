# SPDX-License-Identifier: Apache-2.0
"""orrery.torch and orrery.capture under a real PyTorch, of any version that is here (tools/setup.sh torch)."""

import importlib.util
import os
import subprocess
import sys

import pytest

import orrery
import orrery.torch

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch here: tools/setup.sh torch"),
    pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="PyTorch does not run under the sanitizer"),
]


@pytest.fixture(scope="session")
def torch():
    import torch
    return torch


@pytest.fixture
def step(torch):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.randn(16, 64, device=device)

    def work():
        optimizer.zero_grad()
        model(data).sum().backward()
        optimizer.step()
    work()
    work()
    return work


def test_a_step_is_recorded_linked_and_run(step, torch, tmp_path):
    with orrery.torch.record(tmp_path) as r:
        step()
    facts = r.set.facts["ranks"][0]
    assert facts["linked"] > 0.9 * facts["host_nodes"] > 50
    names = r.set[0].names()
    assert "aten::addmm" in names and any("Backward" in name for name in names)
    assert orrery.check(r.set) and len(r.set.timeline) > 50
    measured = r.set.timeline.column("end_ns").max() - r.set.timeline.column("start_ns").min()
    assert 0.2 * measured < orrery.run(r.set, progress=False).time_ns < 2 * measured
    if torch.cuda.is_available():
        assert any(node.is_cpu_op == 0 for node in r.set[0])


def test_two_recordings_one_after_the_other_and_a_step_that_raises(step):
    with pytest.raises(ZeroDivisionError):
        with orrery.torch.record() as failed:
            step()
            1 / 0
    assert failed.set is None
    with orrery.torch.record() as first:
        step()
    with orrery.torch.record() as second:
        step()
    # The host's own nodes of start and end may differ by a few.
    assert abs(first.set.node_count - second.set.node_count) <= 5


JOB = """
import os, sys, torch, orrery.torch
rank, folder = int(sys.argv[1]), sys.argv[2]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[3])
torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
def step():
    model(torch.randn(4, 64)).sum().backward()
step()
step()
with orrery.torch.record(folder) as r:
    step()
if rank == 0:
    import orrery
    assert len(r.set) == 2 and [x["rank"] for x in r.set.facts["ranks"]] == [0, 1]
    assert all(x["linked"] > 0.8 * x["host_nodes"] for x in r.set.facts["ranks"]), r.set.facts
    print("ranks", len(r.set), "nodes", r.set.node_count)
else:
    assert r.set is None
torch.distributed.barrier()
"""


def test_every_rank_of_a_job_records_and_rank_0_links(torch, tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no gloo")
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    jobs = [subprocess.Popen([sys.executable, "-c", JOB, str(rank), tmp_path / "t", port], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for rank in range(2)]
    said = [job.communicate(timeout=200) for job in jobs]
    if any("gloo" in err and "not available" in err.lower() or "doesn't have GLOO" in err for _, err in said):
        pytest.skip("this PyTorch has no gloo")
    assert [job.returncode for job in jobs] == [0, 0], said
    assert "ranks 2" in said[0][0]


def test_capture(torch):
    def train(rank):
        import torch.distributed as dist
        if not dist.is_initialized():
            dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(4, 64)).sum().backward()
        optimizer.step()
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < (2, 4):
        with pytest.raises(orrery.Error, match="too old"):
            orrery.capture(train, world_size=4)
        return
    s = orrery.capture(train, world_size=8)
    assert len(s) == 8 and any(node.collective == "ALL_REDUCE" for node in s[0])
    assert orrery.check(s) and orrery.run(s, machine="dgx-h100", progress=False).time_ns > 0
