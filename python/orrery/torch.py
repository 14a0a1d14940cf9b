# SPDX-License-Identifier: Apache-2.0
"""For use with PyTorch: record a training step and get its traces.

    import orrery.torch

    with orrery.torch.record("traces") as r:
        step()
    orrery.run(r.set, machine="dgx-h100")

Two recorders of PyTorch run at the same time, the execution trace observer (host) and the profiler (Kineto, device);
their traces are linked when the block ends.  Run a step or two before the block, as for any measurement.  In a
distributed job every rank records into the same folder, and rank 0 links the whole job.  PyTorch is imported when the
block is entered, not before.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from typing import Any, Optional, Union

from ._error import Error
from ._make import Linked, link
from ._trace import Path


def _name_categories(path: str) -> None:
    """A PyTorch built without Kineto, such as Debian's, writes events without categories: adds them, as Kineto does."""
    with open(path, encoding="utf-8") as file:
        if file.read(1) != "[":
            return
        file.seek(0)
        events = json.load(file)
    for event in events:
        category = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}.get(event.get("pid"))
        if category:
            event.update(cat=category, pid=os.getpid())
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "traceEvents": events}, file)


class record:
    """Records the block; set has the traces afterwards.

    folder: where host.RANK.json and device.RANK.json go; None: a temporary one.  rank: default, that of
    torch.distributed, or the variable RANK, or 0.  host_scale and strict are those of orrery.link.  In a job of several
    ranks set is None on all but rank 0.
    """

    set: Optional[Linked] = None

    def __init__(self, folder: Optional[Path] = None, *, rank: Optional[int] = None,
                 host_scale: Union[str, float] = "auto", strict: bool = False) -> None:
        self._temporary = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = self._temporary.name if self._temporary else os.fspath(folder)  # type: ignore[arg-type]
        self.rank = rank
        self._options = {"host_scale": host_scale, "strict": strict}
        self._torch: Any = None
        self._observer: Any = None
        self._profiler: Any = None

    @property
    def host(self) -> str:
        """The execution trace of this rank."""
        return os.path.join(self.folder, f"host.{self.rank}.json")

    @property
    def device(self) -> str:
        """The Kineto trace of this rank."""
        return os.path.join(self.folder, f"device.{self.rank}.json")

    def _is_job(self) -> bool:
        job = self._torch.distributed
        return bool(job.is_available() and job.is_initialized() and job.get_world_size() > 1)

    def __enter__(self) -> "record":
        try:
            torch = importlib.import_module("torch")
        except ImportError as e:
            raise Error("recording needs PyTorch, which this Python does not have") from e
        self._torch = torch
        profiler = torch.profiler
        # It has another name in 1.13.
        observer = getattr(profiler, "ExecutionTraceObserver", None) or getattr(profiler, "ExecutionGraphObserver", None)
        if observer is None:
            raise Error(f"recording needs PyTorch 1.13 or later, this is {torch.__version__}")
        if self.rank is None:
            self.rank = torch.distributed.get_rank() if self._is_job() else int(os.environ.get("RANK", "0"))
        os.makedirs(self.folder, exist_ok=True)
        activities = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        with profiler.profile(activities=activities, record_shapes=True):  # the first start takes milliseconds
            if torch.cuda.is_available():
                torch.ones(1, device="cuda")
        self._observer = observer()
        self._observer.register_callback(self.host)
        self._profiler = profiler.profile(activities=activities, record_shapes=True)
        self._observer.start()
        self._profiler.__enter__()
        return self

    def step(self) -> None:
        """Marks the end of a step, as the profiler's step does; orrery.link(step=N) can keep one."""
        self._profiler.step()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        try:
            if self._torch.cuda.is_available():
                self._torch.cuda.synchronize()
            self._profiler.__exit__(kind, value, trace)
        finally:
            self._observer.stop()
            self._observer.unregister_callback()
        if kind is not None:
            return
        self._profiler.export_chrome_trace(self.device)
        _name_categories(self.device)
        if self._is_job():
            self._torch.distributed.barrier()
            if self.rank == 0:
                self.set = link(self.folder, **self._options)  # type: ignore[arg-type]
        else:
            self.set = link([self.host, self.device], **self._options)  # type: ignore[arg-type]
