# SPDX-License-Identifier: Apache-2.0
"""orrery_capture - records a PyTorch training step without running it on a cluster.

    python -m orrery_capture --world-size 64 -o step.json.gz train.py --its --own --options
    python -m orrery_capture --world-size 64 -o step.json.gz package.train --its --own --options

    import orrery_capture
    with orrery_capture.record("step.json.gz", world_size=64):
        step()

The step runs once, in this process, as one rank of the job: tensors have shapes but no data (fake tensors), and
collectives return at once (PyTorch's fake process group).  A dispatch mode sits below autograd and sees every operator
of the forward pass, the backward pass and the optimizer, and every collective.  The recording is one JSON file
(docs/format/capture.md) that `orrery convert fx` turns into traces of all ranks.

Ranks that can differ are run in sequence: rank 0, then the ranks it exchanges messages with (the stages of a pipeline),
and the last rank, to check that the others are like these.

Needs PyTorch 2.4 or later and nothing else.  Exit codes: 0 success, 2 usage error, 3 the script cannot be captured."""

import argparse
import contextlib
import functools
import gzip
import importlib.util
import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import traceback

FORMAT = "orrery-capture"
VERSION = 1
OLDEST_TORCH = (2, 4)


class CaptureError(Exception):
    """The step cannot be captured; the text says what to do about it."""


try:
    import torch
except ImportError:
    torch = None


def _check_torch():
    if torch is None:
        raise CaptureError(
            "this python has no PyTorch: install torch %d.%d or later, or choose another python with "
            "'orrery capture --python'" % OLDEST_TORCH
        )
    version = tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2])
    if version < OLDEST_TORCH:
        raise CaptureError(
            "PyTorch %s is too old: the fake process group and fake tensors that capture needs came with %d.%d"
            % ((torch.__version__,) + OLDEST_TORCH)
        )


if torch is not None:
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.overrides import TorchFunctionMode
else:  # the error is raised on first use, so that --help works without PyTorch

    class TorchDispatchMode:
        pass

    class TorchFunctionMode:
        pass


# ---- the simulated job ----


class _Job:
    """A fake process group of the whole job, and the list of all groups created.

    Every rank calls new_group() for every group, including those it does not belong to, so the run of one rank knows
    the groups of all ranks.  This makes it possible to derive the ranks that were not run."""

    def __init__(self, world_size, rank, local_size):
        self.world_size, self.rank, self.local_size = world_size, rank, local_size
        self.groups = [{"ranks": list(range(world_size)), "what": "world"}]
        self.number_of_name = {}
        self._undo = []

    def __enter__(self):
        import torch.distributed as dist
        import torch.distributed.distributed_c10d as c10d

        self._environment()
        original_init = c10d.init_process_group
        original_new = c10d._new_group_with_tag

        def init_process_group(*args, **kwargs):
            if not dist.is_initialized():
                self._init(original_init)

        def new_group_with_tag(ranks=None, *args, **kwargs):
            group = original_new(ranks, *args, **kwargs)
            self._note_group(ranks, group, kwargs.get("group_desc"))
            return group

        self._patch(dist, "init_process_group", init_process_group)
        self._patch(c10d, "init_process_group", init_process_group)
        self._patch(c10d, "_new_group_with_tag", new_group_with_tag)
        self._meshes_have_data()
        self._patch(torch.nn.Module, "_apply", _apply_with_new_parameters)
        self._patch(torch.nn.parallel, "DistributedDataParallel", _Ddp)
        self._patch(torch.nn.parallel.distributed, "DistributedDataParallel", _Ddp)
        self._patch(torch, "compile", _compile)
        self._patch(torch.nn.Module, "compile", lambda module, *_, **__: None)
        self._patch(torch.amp.GradScaler, "_maybe_opt_step", _step_always)
        self._objects_stay_here()
        if dist.is_initialized():
            raise CaptureError("a process group exists already: start the capture before init_process_group()")
        self._init(original_init)
        return self

    def __exit__(self, *_):
        import torch.distributed as dist

        if dist.is_initialized():
            dist.destroy_process_group()
        for owner, name, value in reversed(self._undo):
            setattr(owner, name, value)
        for name, value in self._saved_environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def _environment(self):
        local = self.local_size or self.world_size
        values = {
            "RANK": self.rank,
            "WORLD_SIZE": self.world_size,
            "LOCAL_RANK": self.rank % local,
            "LOCAL_WORLD_SIZE": min(local, self.world_size),
            "GROUP_RANK": self.rank // local,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
        }
        self._saved_environment = {k: os.environ.get(k) for k in values}
        os.environ.update({k: str(v) for k, v in values.items()})

    def _patch(self, owner, name, value):
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _meshes_have_data(self):
        """A device mesh looks up its rank in a tensor of ranks, so it runs outside the modes, with real values."""
        import torch.distributed.device_mesh as device_mesh
        from torch.utils._python_dispatch import _disable_current_modes

        def outside(method):
            @functools.wraps(method)
            def call(*args, **kwargs):
                with _disable_current_modes():
                    return method(*[_with_data(a) for a in args], **kwargs)

            return call

        for name, value in list(vars(device_mesh.DeviceMesh).items()):
            if inspect.isfunction(value):
                self._patch(device_mesh.DeviceMesh, name, outside(value))
        init = outside(device_mesh.init_device_mesh)
        self._patch(device_mesh, "init_device_mesh", init)
        self._patch(torch.distributed, "init_device_mesh", init)

    def _objects_stay_here(self):
        """Python objects would be sent as bytes in tensors, which have no data: every rank gets its own back."""
        import torch.distributed as dist
        import torch.distributed.distributed_c10d as c10d

        def all_gather_object(objects, value, group=None):
            objects[:] = [value] * len(objects)

        def gather_object(value, objects=None, *_, **__):
            if objects is not None:
                objects[:] = [value] * len(objects)

        def scatter_object_list(into, objects=None, *_, **__):
            into[0] = objects[self.rank % len(objects)] if objects else None

        def broadcast_object_list(*_, **__):
            pass

        for f in (all_gather_object, gather_object, scatter_object_list, broadcast_object_list):
            self._patch(dist, f.__name__, f)
            self._patch(c10d, f.__name__, f)

    def _init(self, original_init):
        from torch.testing._internal.distributed.fake_pg import FakeStore

        original_init("fake", store=FakeStore(), rank=self.rank, world_size=self.world_size)
        self.number_of_name[torch.distributed.group.WORLD.group_name] = 0

    def _note_group(self, ranks, group, what):
        ranks = list(ranks) if ranks is not None else list(range(self.world_size))
        self.groups.append({"ranks": [int(r) for r in ranks], "what": str(what or "")})
        name = getattr(group, "group_name", None)
        if name is not None and not isinstance(group, int):
            self.number_of_name[name] = len(self.groups) - 1

    def number_of(self, group_name):
        """The number of a group, by PyTorch's name for it."""
        if group_name not in self.number_of_name:
            import torch.distributed.distributed_c10d as c10d

            group = c10d._resolve_process_group(group_name)  # created in a way that was not intercepted
            ranks = list(torch.distributed.get_process_group_ranks(group))
            self._note_group(ranks, group, "")
        return self.number_of_name[group_name]


def _with_data(value):
    """A mesh given as a tensor: its values are needed."""
    if type(value).__name__ != "FakeTensor":
        return value
    if getattr(value, "constant", None) is not None:
        return value.constant
    raise CaptureError("DeviceMesh at %s: give the ranks as a list, captured tensors have no data" % _user_line())


def _apply_with_new_parameters(module, function, recurse=True, _known=None):
    """Module.to() and the like.  PyTorch swaps the contents of two tensors, which fake tensors do not support, so the
    module gets new parameters.  Shared parameters stay shared."""
    known = {} if _known is None else _known
    for child in module.children() if recurse else ():
        _apply_with_new_parameters(child, function, recurse, known)
    with torch.no_grad():
        for name, p in module._parameters.items():
            if p is not None and id(p) not in known:
                known[id(p)] = (torch.nn.Parameter(function(p), p.requires_grad), p)
            if p is not None:
                module._parameters[name] = known[id(p)][0]
        for name, b in module._buffers.items():
            if b is not None:
                module._buffers[name] = function(b)
    return module


def _compile(model=None, **_):
    """torch.compile: the operators before compilation are recorded; what the compiler would fuse is unknown."""
    return model if model is not None else lambda function: function


def _step_always(_, optimizer, __, *args, **kwargs):
    """A gradient scaler skips the step if it finds an infinite gradient; without data there are none."""
    return optimizer.step(*args, **kwargs)


# ---- DistributedDataParallel, in Python ----

_BUCKET_BYTES = 25 * 1024 * 1024
_FIRST_BUCKET_BYTES = 1024 * 1024


class _Ddp(torch.nn.Module if torch is not None else object):
    """DistributedDataParallel in Python: gradients in buckets, in reverse order of the parameters, each all-reduced as
    soon as its last gradient is ready; the step waits for all of them at the end of the backward pass.  The original is
    C++ that accesses the memory of tensors, which fake tensors do not have."""

    def __init__(self, module, *_, process_group=None, bucket_cap_mb=None, device_mesh=None, **__):
        super().__init__()
        self.module = module
        self._group = device_mesh.get_group() if device_mesh is not None else process_group
        self._sync, self._pending, self._is_queued = True, [], False
        self._make_buckets(int(bucket_cap_mb * 1024 * 1024) if bucket_cap_mb else _BUCKET_BYTES)

    def _make_buckets(self, limit):
        limits, self._bucket_of, self._buckets, size, last = iter([_FIRST_BUCKET_BYTES]), {}, [], 0, None
        room = next(limits)
        for p in reversed([p for p in self.module.parameters() if p.requires_grad]):
            kind = (p.dtype, p.device)
            if not self._buckets or size >= room or kind != last:
                if self._buckets and size >= room:
                    room = limit
                self._buckets.append([])
                size = 0
            self._buckets[-1].append(p)
            self._bucket_of[p] = len(self._buckets) - 1
            size, last = size + p.numel() * p.element_size(), kind
            p.register_post_accumulate_grad_hook(self._on_gradient)
        self._missing = [len(b) for b in self._buckets]

    def forward(self, *args, **kwargs):
        self._missing = [len(b) for b in self._buckets]
        return self.module(*args, **kwargs)

    def _on_gradient(self, p):
        if not self._sync:
            return
        if not self._is_queued:
            self._is_queued = True
            torch.autograd.Variable._execution_engine.queue_callback(self._finish)
        number = self._bucket_of[p]
        self._missing[number] -= 1
        if self._missing[number] == 0:
            self._reduce(self._buckets[number])

    def _reduce(self, bucket):
        import torch.distributed as dist

        flat = torch.cat([p.grad.reshape(-1) for p in bucket])
        flat.div_(dist.get_world_size(self._group))
        self._pending.append((bucket, flat, dist.all_reduce(flat, group=self._group, async_op=True)))

    def _finish(self):
        for bucket, flat, work in self._pending:
            work.wait()
            parts = flat.split([p.numel() for p in bucket])
            for p, part in zip(bucket, parts):
                p.grad.copy_(part.view_as(p))
        self._pending, self._is_queued = [], False

    @contextlib.contextmanager
    def no_sync(self):
        before, self._sync = self._sync, False
        try:
            yield
        finally:
            self._sync = before

    def state_dict(self, *args, **kwargs):
        return self.module.state_dict(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)


# ---- a machine without a GPU ----


class _CudaIsCpu(TorchFunctionMode):
    """For scripts that use the device "cuda" on a machine without a GPU: their tensors, which have no data anyway, are
    created on the CPU."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        args, kwargs = _on_cpu(args), {k: _on_cpu(v) for k, v in (kwargs or {}).items()}
        if func in (torch.rms_norm, torch.nn.functional.rms_norm) and not any(map(_is_wrapper, types)):
            return _rms_norm(*args, **kwargs)
        return func(*args, **kwargs)


# On a GPU an RMS norm is one operator, on a CPU eight small ones.  These two have the GPU's names and arguments.
_FUSED_FORWARD = "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)"
_FUSED_BACKWARD = (
    "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, "
    "bool[2] output_mask) -> (Tensor, Tensor)"
)


def _fused_forward(x, shape, weight, eps):
    y = x.float()
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    rstd = torch.rsqrt(y.pow(2).mean(_last(x, shape), keepdim=True) + eps)
    y = y * rstd
    return (y if weight is None else y * weight).to(x.dtype), rstd


def _fused_backward(grad, x, shape, rstd, weight, _):
    unit, slope = x.float() * rstd, grad.float()
    by_weight = (slope * unit).sum([d for d in range(x.dim() - len(shape))])
    slope = slope if weight is None else slope * weight
    by_input = (slope - unit * (slope * unit).mean(_last(x, shape), keepdim=True)) * rstd
    return by_input.to(x.dtype), by_weight.to(x.dtype if weight is None else weight.dtype)


def _last(x, shape):
    return [d for d in range(x.dim() - len(shape), x.dim())]


@functools.lru_cache(maxsize=None)
def _fused_operators():
    library = torch.library.Library("orrery", "DEF")
    for form, body in ((_FUSED_FORWARD, _fused_forward), (_FUSED_BACKWARD, _fused_backward)):
        library.define(form)
        library.impl(form.partition("(")[0], body, "CompositeExplicitAutograd")
    return library, torch.ops.orrery  # the operators live as long as the library object


class _RmsNorm(torch.autograd.Function if torch is not None else object):
    @staticmethod
    def forward(ctx, x, weight, shape, eps):
        y, rstd = _fused_operators()[1]._fused_rms_norm(x, shape, weight, eps)
        ctx.save_for_backward(x, rstd, weight)
        ctx.shape = shape
        return y

    @staticmethod
    def backward(ctx, grad):
        x, rstd, weight = ctx.saved_tensors
        mask = [ctx.needs_input_grad[0], weight is not None and ctx.needs_input_grad[1]]
        by_input, by_weight = _fused_operators()[1]._fused_rms_norm_backward(grad, x, ctx.shape, rstd, weight, mask)
        return by_input, by_weight if mask[1] else None, None, None


def _rms_norm(input, normalized_shape, weight=None, eps=None):
    return _RmsNorm.apply(input, weight, list(normalized_shape), eps)


def _on_cpu(value):
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_on_cpu(v) for v in value)
    return value


_CUDA_ANSWERS = {
    "set_device": None,
    "synchronize": None,
    "current_device": 0,
    "empty_cache": None,
    "reset_peak_memory_stats": None,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "memory_summary": "",
    "get_device_name": "cuda",
    "get_device_capability": (9, 0),
    "is_bf16_supported": True,
}


def _answer(value):
    return lambda *_, **__: value


class _Nothing:
    """A stream or an event that does nothing: the graph determines the order, and no time passes."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)  # not an array, not a number, and nothing that can be copied in parts
        return _answer({"elapsed_time": 0.0, "query": True, "record_event": self}.get(name))


_STREAM_NAMES = ("Event", "Stream", "stream", "current_stream", "default_stream")


def _replace_streams(set_name, modules):
    """FSDP uses streams of its device's module.  Up to PyTorch 2.5 that is torch.cuda, later torch.cpu for a mesh of
    CPUs, whose streams lack, depending on the version, most or all of the methods of torch.cuda's (record_event,
    wait_event)."""
    for module in modules:
        for name in _STREAM_NAMES:
            set_name(module, name, _Nothing)


@contextlib.contextmanager
def _without_gpu():
    import torch.distributed.device_mesh as device_mesh

    undo = []

    def put(owner, name, value):
        undo.append((owner, name, getattr(owner, name, undo)))
        setattr(owner, name, value)

    def patch(owner, name, value):
        if hasattr(owner, name):
            put(owner, name, value)

    def on_cpu(original):
        @functools.wraps(original)
        def call(*args, **kwargs):
            return original(*_on_cpu(args), **{k: _on_cpu(v) for k, v in kwargs.items()})

        return call

    for name, value in _CUDA_ANSWERS.items():
        patch(torch.cuda, name, _answer(value))
    patch(torch.cuda, "device_count", lambda: int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    _replace_streams(put, [torch.cuda, torch.cpu])
    for name in ("synchronize", "set_device_index", "set_device_idx", "set_stream"):
        patch(getattr(torch, "accelerator", None), name, _answer(None))
    patch(torch.amp.autocast_mode.autocast, "__init__", on_cpu(torch.amp.autocast_mode.autocast.__init__))
    scaler = torch.amp.GradScaler.__init__
    patch(torch.amp.GradScaler, "__init__", lambda self, device="cpu", *a, **k: scaler(self, _on_cpu(device), *a, **k))
    patch(torch.nn.Module, "cuda", lambda self, *_: self)
    patch(torch.Tensor, "cuda", lambda self, *_, **__: self)
    patch(device_mesh, "init_device_mesh", on_cpu(device_mesh.init_device_mesh))
    patch(torch.distributed, "init_device_mesh", device_mesh.init_device_mesh)
    # A mode is off while it handles a call, and backward() is a call.  Recomputation by checkpoint inside it must match
    # the forward pass operator by operator, so the mode is turned on again there.
    mode, engine = _CudaIsCpu(), getattr(torch.autograd, "_engine_run_backward", None)

    def run_backward(*args, **kwargs):
        with mode:
            return engine(*args, **kwargs)

    patch(torch.autograd, "_engine_run_backward", run_backward)
    try:
        with mode:
            yield
    finally:
        for owner, name, value in reversed(undo):
            if value is undo:  # the attribute did not exist
                delattr(owner, name)
            else:
                setattr(owner, name, value)


# ---- the recorded graph ----

_TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) if torch is not None else ""
_OWN_FILE = os.path.abspath(__file__)


def _user_line():
    """file:line of the innermost frame outside PyTorch and this module."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_TORCH_FOLDER) and name != _OWN_FILE and not name.startswith("<"):
            if os.sep + "runpy.py" not in name and os.sep + "contextlib.py" not in name:
                return "%s:%d" % (os.path.basename(name), frame.f_lineno)
        frame = frame.f_back
    return ""


class _Texts:
    """A table of unique texts."""

    def __init__(self):
        self.list, self._number = [], {}

    def number(self, text):
        if text not in self._number:
            self._number[text] = len(self.list)
            self.list.append(text)
        return self._number[text]


class _Graph:
    """Nodes, tensors and texts in the form of the file."""

    def __init__(self):
        self.ops, self.modules, self.lines = _Texts(), _Texts(), _Texts()
        self.tensors, self._tensor_number = [], {}
        self.nodes = []
        self._storage_number, self._storages = {}, []
        self.kinds = {}  # storage: "parameter", "buffer", "state"
        self.notes = {}

    def tensor(self, t):
        """The number of a tensor in its current form: two views of one storage are two tensors."""
        storage = self._storage(t)
        shape = [int(s) for s in t.shape]
        stride = [int(s) for s in t.stride()] if t.layout == torch.strided else []
        key = (storage, str(t.dtype), tuple(shape), tuple(stride), self._offset(t))
        if key not in self._tensor_number:
            self._tensor_number[key] = len(self.tensors)
            self.tensors.append(
                {
                    "shape": shape,
                    "dtype": str(t.dtype).replace("torch.", ""),
                    "stride": stride,
                    "offset": key[4],
                    "storage": storage,
                    "device": t.device.type,
                }
            )
        return self._tensor_number[key]

    @staticmethod
    def _offset(t):
        return int(t.storage_offset()) if t.layout == torch.strided else 0

    def _storage(self, t):
        from torch.multiprocessing.reductions import StorageWeakRef

        if t.layout != torch.strided:
            return self._fresh_storage(None)
        ref = StorageWeakRef(t.untyped_storage())
        known = self._storage_number.get(ref.cdata)
        if known is None or known[1].expired():
            known = (self._fresh_storage(t), ref)
            self._storage_number[ref.cdata] = known
        return known[0]

    def _fresh_storage(self, t):
        self._storages.append(int(t.untyped_storage().nbytes()) if t is not None else 0)
        return len(self._storages) - 1

    def mark(self, t, kind):
        if type(t).__name__ == "DTensor":
            t = t._local_tensor
        with contextlib.suppress(Exception):  # tensor types without storage need no mark
            self.kinds.setdefault(self._storage(t), kind)

    def note(self, text):
        self.notes[text] = self.notes.get(text, 0) + 1

    def document(self):
        return {
            "ops": self.ops.list,
            "modules": self.modules.list,
            "lines": self.lines.list,
            "storages": self._storages,
            "kept": [[s, k] for s, k in sorted(self.kinds.items())],
            "tensors": self.tensors,
            "nodes": self.nodes,
        }


class _Work:
    """Creates the object that an asynchronous collective returns; its wait() becomes a node."""

    def __init__(self, recorder):
        base = torch._C._distributed_c10d.Work
        fake = getattr(torch._C._distributed_c10d, "FakeWork", None)

        class Traced(base):
            def __init__(self, tensors):
                super().__init__()
                self.tensors = tensors

            def wait(self, *_):
                recorder.on_wait(self.tensors)
                return True

            def is_completed(self):
                return True

            def is_success(self):
                return True

            def get_future(self):
                future = torch.futures.Future()
                future.set_result(self.tensors)
                return future

        self._traced, self._fake, self._alive = Traced, fake, []

    def make(self, tensors):
        work = self._traced(tensors)
        self._alive.append(work)  # PyTorch keeps only its C++ half
        return work.boxed() if hasattr(work, "boxed") else work


class _Stop(BaseException):
    """Raised after the last step needed, to leave the script."""


class _Recorder(TorchDispatchMode):
    """Records every operator below autograd."""

    def __init__(self, job, graph, fake_mode, is_strict):
        super().__init__()
        self.job, self.graph, self.fake_mode, self.is_strict = job, graph, fake_mode, is_strict
        self.step, self.in_optimizer, self.has_begun = 0, False, False
        self.steps_wanted = 0
        self._stepped, self._optimizers, self._after = set(), None, 0
        self._works = _Work(self)
        self._tracker = None

    # -- position in the step --

    def start(self):
        from torch.nn.modules import module as modules
        from torch.optim import optimizer

        self._handles = [
            optimizer.register_optimizer_step_pre_hook(self._before_optimizer),
            optimizer.register_optimizer_step_post_hook(self._after_optimizer),
            modules.register_module_forward_pre_hook(self._before_module),
        ]
        with contextlib.suppress(ImportError):
            from torch.utils.module_tracker import ModuleTracker

            self._tracker = ModuleTracker()
            self._tracker.__enter__()

    def end(self):
        for h in self._handles:
            h.remove()
        if self._tracker is not None:
            self._tracker.__exit__(None, None, None)

    def _before_module(self, module, _):
        if self._stepped and self.phase() != "backward":
            self._optimizers = len(self._stepped)
            self._stepped = set()
            self._stop_if_done()
        if not self.has_begun or not getattr(module, "_orrery_marked", False):
            self.has_begun = True
            for m in module.modules():
                m.__dict__["_orrery_marked"] = True
            for p in module.parameters():
                self.graph.mark(p, "parameter")
            for b in module.buffers():
                self.graph.mark(b, "buffer")

    def _before_optimizer(self, optimizer, *_):
        self.in_optimizer = True
        self._mark_state(optimizer)
        if self._stepped and id(optimizer) not in self._stepped:  # another optimizer of the same step
            self.step -= 1
            for n in self.graph.nodes[self._after :]:
                n["step"] = self.step

    def _after_optimizer(self, optimizer, *_):
        """A step ends here unless another optimizer follows; the second step knows how many there are."""
        self.in_optimizer = False
        self._mark_state(optimizer)
        self.step += 1
        self._after = len(self.graph.nodes)
        self._stepped.add(id(optimizer))
        if len(self._stepped) == self._optimizers:
            self._stop_if_done()

    def _stop_if_done(self):
        if self.steps_wanted and self.step >= self.steps_wanted:
            raise _Stop

    def _mark_state(self, optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                self.graph.mark(p, "parameter")
        for state in optimizer.state.values():
            for t in state.values():
                if isinstance(t, torch.Tensor):
                    self.graph.mark(t, "state")

    def phase(self):
        if self.in_optimizer:
            return "optimizer"
        if torch._C._current_graph_task_id() != -1:
            return "backward"
        return "forward" if self.has_begun else "setup"

    def _module(self):
        if self._tracker is None:
            return ""
        names = [n for n in self._tracker.parents if n != "Global"]
        return max(names, key=len) if names else ""

    # -- operators --

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(_is_wrapper(t) for t in types):
            return NotImplemented  # a sharded tensor: it is called again with its local parts
        if self._is_foreign(args, kwargs):
            return func(*args, **kwargs)
        space = func.namespace
        if space == "c10d":
            return self._collective(func, args, kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            return self._value_of(func, args)
        if space in ("prim", "profiler"):
            return func(*args, **kwargs)
        try:
            result = func(*args, **kwargs)
        except Exception as problem:
            raise self._explained(func, problem) from problem
        self._note(func, args, kwargs, result)
        return result

    def _is_foreign(self, args, kwargs):
        """A tensor of another fake mode, used to infer shapes: not part of the step."""
        if self.fake_mode is None:
            return False
        for t in _tensors((args, kwargs)):
            mode = getattr(t, "fake_mode", None)
            if mode is not None and mode is not self.fake_mode:
                return True
            if mode is None and t.device.type == "meta":
                return True
        return False

    def _explained(self, func, problem):
        kind = type(problem).__name__
        if kind in ("DynamicOutputShapeException", "DataDependentOutputException"):
            return CaptureError(
                "%s at %s: what comes out depends on the data, and captured tensors have none; "
                "give fixed shapes there, or run with real data: --real" % (func, _user_line())
            )
        return problem

    def _value_of(self, func, args):
        """tensor.item(): there is no value.  1 is plausible for a loss, a scale or a count."""
        if self.fake_mode is None:
            return func(*args)
        if self.is_strict:
            raise CaptureError("tensor.item() at %s: captured tensors have no data" % _user_line())
        self.graph.note("item() at %s gave 1, as captured tensors have no data" % _user_line())
        dtype = args[0].dtype
        return True if dtype == torch.bool else 1.0 if dtype.is_floating_point else 1

    def _note(self, func, args, kwargs, result):
        schema = func._schema
        named = {}
        for i, a in enumerate(schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(a.name)
            plain = _plain(value)
            if plain is not None:
                named[a.name] = plain
        inputs = [self.graph.tensor(t) for t in _tensors((args, kwargs))]
        outputs = [self.graph.tensor(t) for t in _tensors(result)]
        writes = [
            self.graph.tensor(t)
            for i, a in enumerate(schema.arguments)
            if a.alias_info is not None and a.alias_info.is_write
            for t in _tensors(args[i] if i < len(args) else kwargs.get(a.name))
        ]
        is_view = any(a.alias_info is not None and not a.alias_info.is_write for a in schema.arguments)
        group = named.get("group_name")
        if group is not None:
            named["group"] = self.job.number_of(group)
        self._add(str(func).replace("orrery._fused", "aten._fused"), inputs, outputs, writes, named, is_view)

    def _add(self, op, inputs, outputs, writes, named, is_view=False):
        g = self.graph
        node = {"op": g.ops.number(op), "step": self.step, "phase": self.phase()}
        node["in"], node["out"] = inputs, outputs
        if writes:
            node["writes"] = writes
        if is_view:
            node["view"] = 1
        if named:
            node["args"] = named
        node["module"] = g.modules.number(self._module())
        node["line"] = g.lines.number(_user_line())
        g.nodes.append(node)

    # -- collectives of torch.distributed --

    def _collective(self, func, args, kwargs):
        schema, named, group = func._schema, {}, None
        for i, a in enumerate(schema.arguments):
            value = args[i] if i < len(args) else kwargs.get(a.name)
            if "ProcessGroup" in str(a.type):
                group = torch._C._distributed_c10d.ProcessGroup.unbox(value) if value is not None else None
            elif "ReduceOp" in str(a.type):
                continue
            else:
                plain = _plain(value)
                if plain is not None:
                    named[a.name] = plain
        if group is not None:
            named["group"] = self.job.number_of(group.group_name)
        first = args[0] if args else ()
        outputs = [self.graph.tensor(t) for t in _tensors(first)]
        inputs = [self.graph.tensor(t) for t in _tensors((args[1:], kwargs))]
        name = str(func)
        if name.startswith(("c10d.send", "c10d.barrier")):
            inputs, outputs = outputs, []
        elif not inputs and "recv" not in name:
            inputs = outputs  # in place
        self._add(name, inputs, outputs, outputs, named)
        work = self._works.make(list(_tensors(first)))
        kinds = [str(r.type) for r in schema.returns]
        results = [work if "Work" in k else first for k in kinds]
        return results[0] if len(results) == 1 else tuple(results)

    def on_wait(self, tensors):
        numbers = [self.graph.tensor(t) for t in tensors]
        self._add("orrery.wait", numbers, [], [], {})


def _is_wrapper(kind):
    return kind.__name__ in ("DTensor", "AsyncCollectiveTensor") or (
        kind is not torch.Tensor
        and kind is not torch.nn.Parameter
        and kind.__name__ not in ("FakeTensor", "Parameter", "Buffer")
        and "__torch_dispatch__" in kind.__dict__
    )


def _tensors(value):
    """All tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors(v)


def _plain(value):
    """A value that JSON can represent, or None."""
    if isinstance(value, bool) or isinstance(value, str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, torch.dtype):
        return str(value).replace("torch.", "")
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, (bool, int, float)) for v in value):
        return [v if isinstance(v, (bool, float)) else int(v) for v in value]
    return None


# ---- recording ----


def _families(groups):
    """Families of groups: created in sequence for the same purpose, of equal size, with no rank in two of them.  The
    position of a rank in the groups of each family identifies it."""
    family, members, last = -1, set(), None
    for g in groups:
        key = (len(g["ranks"]), g["what"])
        if key != last or members & set(g["ranks"]):
            family, members, last = family + 1, set(), key
        members |= set(g["ranks"])
        g["family"] = family
    return groups


def _pick_step(graph, wanted):
    """Selects a step: the one requested, else the last that ended (the first also creates the model and the optimizer's
    state)."""
    nodes = graph["nodes"]
    steps = sorted({n["step"] for n in nodes if n["phase"] == "optimizer"})
    if wanted is None:
        wanted = steps[-1] if steps else 0
    if steps and wanted not in steps:
        raise CaptureError("step %d was not seen; the optimizer stepped %d times" % (wanted, len(steps)))
    graph["nodes"] = [n for n in nodes if n["step"] == wanted and n["phase"] != "setup"]
    if not graph["nodes"]:
        raise CaptureError("step %d was not seen; no optimizer stepped" % wanted)
    for n in graph["nodes"]:
        del n["step"]
    return wanted


class record:
    """Captures the block:

        with orrery_capture.record("step.json", world_size=64, rank=0):
            model = Model(); ...; step()

    path: the file to write, compressed if it ends in .gz; None: none, use .document afterwards.  step: which optimizer
    step to keep, from 0; None: the last.  steps: leave the block after this many (0: never).  real: with real tensors
    and their data.  strict: item() is an error."""

    def __init__(self, path, world_size=1, rank=0, step=None, steps=0, real=False, strict=False, local_size=None):
        _check_torch()
        if world_size < 1 or not 0 <= rank < world_size:
            raise CaptureError("rank %d of %d: ranks go from 0 to world_size - 1" % (rank, world_size))
        self.path, self.step, self.steps, self.real, self.strict = path, step, steps, real, strict
        self.job = _Job(world_size, rank, local_size)
        self.document = None

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        enter = self._stack.enter_context
        enter(self.job)
        if not torch.cuda.is_available():
            enter(_without_gpu())
        mode = None
        if not self.real:
            from torch._subclasses.fake_tensor import FakeTensorMode

            mode = enter(FakeTensorMode(allow_non_fake_inputs=True))
        self.graph = _Graph()
        self._recorder = _Recorder(self.job, self.graph, mode, self.strict)
        self._recorder.steps_wanted = self.steps
        self._recorder.start()
        self._stack.callback(self._recorder.end)
        enter(self._recorder)
        return self

    def __exit__(self, kind, value, trace):
        self._stack.close()
        if kind is not None and kind is not _Stop:
            return False
        graph = self.graph.document()
        if not any(n["phase"] != "setup" for n in graph["nodes"]):
            raise CaptureError("nothing was seen: no module was called")
        step = _pick_step(graph, self.step)
        graph["rank"] = self.job.rank
        self.document = {
            "format": FORMAT,
            "version": VERSION,
            "torch": torch.__version__,
            "world_size": self.job.world_size,
            "step": step,
            "groups": _families(self.job.groups),
            "notes": [{"text": t, "count": c} for t, c in self.graph.notes.items()],
            "graphs": [graph],
        }
        if self.path is not None:
            write(self.path, self.document)
        return True


def capture(function, path, world_size, ranks="auto", **options):
    """Runs function(rank) once for every rank that can differ; see record() for the options."""
    documents = {}

    def one(rank):
        with record(None, world_size=world_size, rank=rank, **options) as r:
            function(rank)
        documents[rank] = r.document

    _for_ranks(one, documents, ranks, world_size)
    document = _merged(documents)
    if path is not None:
        write(path, document)
    return document


def _for_ranks(one, documents, ranks, world_size):
    todo = [0] if ranks == "auto" else list(range(world_size)) if ranks == "all" else sorted(set(ranks))
    for r in todo:
        if not 0 <= r < world_size:
            raise CaptureError("rank %d: the job has ranks 0 to %d" % (r, world_size - 1))
    seen = set()
    while todo:
        rank = todo.pop(0)
        one(rank)
        if ranks != "auto":
            continue
        signature = _signature(documents[rank])
        if signature not in seen:
            todo += [p for p in _peers(documents[rank]) if p not in documents and p not in todo]
        elif rank != world_size - 1:
            del documents[rank]  # identical to an existing one
        seen.add(signature)
        if not todo and world_size - 1 not in documents:
            todo.append(world_size - 1)


def _signature(document):
    """Equal for ranks that do the same, possibly in different groups."""
    graph = document["graphs"][0]

    def form(number):
        t = graph["tensors"][number]
        return (tuple(t["shape"]), t["dtype"])

    def words(node):
        return tuple((k, str(v)) for k, v in node.get("args", {}).items() if k not in ("group", "group_name"))

    return hash(
        tuple(
            (graph["ops"][n["op"]], words(n), tuple(form(t) for t in n["in"]), tuple(form(t) for t in n["out"]))
            for n in graph["nodes"]
        )
    )


def _peers(document):
    """The ranks that it sends to and receives from."""
    groups, found = document["groups"], []
    graph = document["graphs"][0]
    for n in graph["nodes"]:
        args = n.get("args", {})
        if graph["ops"][n["op"]].startswith(("c10d.send", "c10d.recv_.")):
            place = args.get("dst", args.get("src"))
            peer = groups[args["group"]]["ranks"][place]
            if peer not in found:
                found.append(peer)
    return found


def _merged(documents):
    first = documents[min(documents)]
    for rank, d in documents.items():
        if [g["ranks"] for g in d["groups"]] != [g["ranks"] for g in first["groups"]]:
            raise CaptureError(
                "rank %d makes other process groups than rank %d: every rank must call new_group() for all groups "
                "in the same order" % (rank, min(documents))
            )
    merged = dict(first)
    merged["graphs"] = [documents[r]["graphs"][0] for r in sorted(documents)]
    notes = {n["text"]: n["count"] for d in documents.values() for n in d["notes"]}
    merged["notes"] = [{"text": t, "count": c} for t, c in notes.items()]
    return merged


def write(path, document):
    """Atomic: writes a temporary file in the same folder, then renames it."""
    data = json.dumps(document, separators=(",", ":")).encode()
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    temporary = "%s.part%d" % (path, os.getpid())
    try:
        with open(temporary, "wb") as f:
            f.write(data)
        os.replace(temporary, path)
    except BaseException as e:  # clean up after interrupts too
        with contextlib.suppress(OSError):
            os.remove(temporary)
        if not isinstance(e, OSError):
            raise
        raise CaptureError("%s: cannot be written: %s" % (path, e.strerror)) from e


# ---- the command ----


def _arguments(argv):
    p = argparse.ArgumentParser(
        prog="orrery_capture",
        description="Run a training script as one rank of a job, without data and without a cluster, and record "
        "every operator and collective of one step.",
        epilog="The file is read by 'orrery convert fx'.",
    )
    p.add_argument("--world-size", "-n", type=int, default=1, help="ranks of the job (default 1)")
    p.add_argument("--local-size", type=int, help="ranks per node, for LOCAL_RANK (default: all)")
    p.add_argument("--ranks", default="auto", help="auto: those that can differ; all; or a list: 0,8,16")
    p.add_argument("--step", type=int, help="which step to keep, from 0 (default: the last that was run)")
    p.add_argument("--steps", type=int, default=2, help="stop the script after this many optimizer steps (default 2)")
    p.add_argument("--output", "-o", default="capture.json.gz", help="default capture.json.gz")
    p.add_argument("--real", action="store_true", help="real tensors with data (slow; needs the memory)")
    p.add_argument("--strict", action="store_true", help="tensor.item() is an error")
    p.add_argument("--one-rank", type=int, help=argparse.SUPPRESS)
    p.add_argument("script", help="the training script, or a module such as package.train")
    p.add_argument("rest", nargs=argparse.REMAINDER, help="its arguments")
    return p.parse_args(argv)


def _is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _run_script(a):
    sys.argv = [a.script] + a.rest
    is_file = os.path.isfile(a.script)
    sys.path.insert(0, os.path.dirname(os.path.abspath(a.script)) if is_file else os.getcwd())
    options = {"step": a.step, "steps": a.steps, "real": a.real, "strict": a.strict, "local_size": a.local_size}
    with record(a.output, world_size=a.world_size, rank=a.one_rank, **options):
        if not is_file and not _is_module(a.script):
            raise CaptureError("%s: neither a script nor a module that can be imported" % a.script)
        try:
            if is_file:
                runpy.run_path(a.script, run_name="__main__")
            else:
                runpy.run_module(a.script, run_name="__main__", alter_sys=True)
        except SystemExit as e:
            if e.code not in (None, 0):
                raise CaptureError("the script left with code %s before its step was done" % e.code) from e


def _run_ranks(a):
    """Each rank runs in its own process, because scripts leave state behind."""
    documents = {}
    ranks = a.ranks
    if ranks not in ("auto", "all"):
        try:
            ranks = [int(r) for r in ranks.split(",")]
        except ValueError:
            raise CaptureError("--ranks %s: auto, all, or comma-separated numbers" % ranks) from None
    with tempfile.TemporaryDirectory() as folder:

        def one(rank):
            path = os.path.join(folder, "rank%d.json" % rank)
            command = [sys.executable, _OWN_FILE, "--one-rank", str(rank), "--world-size", str(a.world_size)]
            command += ["--output", path, "--steps", str(a.steps)]
            command += ["--step", str(a.step)] if a.step is not None else []
            command += ["--local-size", str(a.local_size)] if a.local_size else []
            command += ["--real"] if a.real else []
            command += ["--strict"] if a.strict else []
            done = subprocess.run(command + [a.script] + a.rest, check=False)
            if done.returncode < 0:
                raise CaptureError("rank %d was ended by signal %d" % (rank, -done.returncode))
            if done.returncode:
                raise SystemExit(done.returncode if done.returncode in (2, 3) else 3)
            if not os.path.exists(path):
                raise CaptureError("rank %d left, as os._exit() does, before its step was done" % rank)
            with open(path, "rb") as f:
                documents[rank] = json.load(f)
            os.remove(path)

        _for_ranks(one, documents, ranks, a.world_size)
    document = _merged(documents)
    write(a.output, document)
    nodes = sum(len(g["nodes"]) for g in document["graphs"])
    print(
        "%s: step %d of %d ranks, %d captured, %d nodes"
        % (a.output, document["step"], a.world_size, len(documents), nodes)
    )
    for n in document["notes"]:
        print("note: %s (%d times)" % (n["text"], n["count"]))


def main(argv=None):
    a = _arguments(argv)
    try:
        _check_torch()
        if not os.path.isfile(a.script) and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(?<!\.py)", a.script):
            raise CaptureError("%s: no such script" % a.script)
        if a.world_size < 1:
            raise CaptureError("--world-size %d: at least 1" % a.world_size)
        _run_script(a) if a.one_rank is not None else _run_ranks(a)
    except CaptureError as e:
        print("orrery_capture: %s" % e, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    except Exception as e:
        traceback.print_exc()
        print("orrery_capture: %s failed as rank %s: %s" % (a.script, a.one_rank, e), file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    # Under its real module name, so that scripts that import it get the same module.
    sys.path.insert(0, os.path.dirname(_OWN_FILE))
    import orrery_capture

    sys.exit(orrery_capture.main())
