#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the trace linker and of the PyTorch conversion (docs/spec/chakra.md, sections 3 and 4.1, 4.2).

  chakra_link.py link --rank N --chakra-host-trace F --chakra-device-trace F --output-file F
  chakra_link.py convert --input LINKED --output F.et        writes F.et and F.jsonl
  chakra_link.py --random SEED --out DIR [torch_pairs options]
      random case: host.json, device.json, linked.json, trace.et, trace.jsonl
  chakra_link.py --verify DIR     every chakra_trace_link / PyTorch case of DIR/manifest.json

Not covered: sync_dep (section 3.6; it needs a critical-path analysis), the host schema 1.0.1, --simulate. sync_dep has
no influence on the converted trace (section 4.1), so converted traces can be compared completely. linked.json is
compared as bytes once sync_dep is taken out. Failures exit with status 1 and a one-line message.
"""
import argparse
import bisect
import copy
import gzip
import json
import os
import random
import re
import sys
import tempfile

from chakra_feeder import write_et, write_jsonl

LAUNCH_CALLS = frozenset("""cuLaunchKernel cuLaunchKernelEx cudaLaunchKernel cudaLaunchKernelExC cudaMemcpy cudaMemcpyAsync
    cudaMemcpyFromSymbol cudaMemcpyToSymbol cudaLaunchCooperativeKernel hipLaunchKernel hipExtLaunchKernel
    hipExtModuleLaunchKernel hipModuleLaunchKernel hipMemcpyWithStream hipMemcpyAsync""".split())
LINKABLE = {"1.0.%d-chakra.0.0.4" % i for i in (2, 3, 4)} | {"1.1.%d-chakra.0.0.4" % i for i in (0, 1)}
CONVERTIBLE = LINKABLE - {"1.0.4-chakra.0.0.4"}
THREAD_NAMES = {"[pytorch|profiler|execution_%s|thread]" % word for word in ("trace", "graph")}
GAP_MICROS = 1000                                  # silence on a thread that starts a new group (section 3.5)
COLLECTIVES = [("allreduce", 0), ("alltoall", 6), ("allgather", 2), ("reducescatter", 7), ("broadcast", 5)]
REQUIRED_ATTRS = ["rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema"]


class TraceError(ValueError):
    """The input is rejected."""


# ---------------------------------------------------------------------------------- device trace (sections 3.3, 3.4, 3.5)

class Span:
    """A device-trace event with the fields that matter."""
    __slots__ = ("name", "cat", "ph", "ts", "dur", "tid", "external", "rf", "stream", "correlation", "group", "own_time", "after_rf")

    def __init__(self, event):
        extra = event.get("args") or {}
        self.name, self.cat, self.ph = event.get("name", ""), event.get("cat", ""), event.get("ph")
        self.ts, self.dur, self.tid = event.get("ts", 0), event.get("dur", 0), event.get("tid", 0)
        self.external = int(extra.get("External id", -1))
        self.rf, self.stream = extra.get("Record function id"), extra.get("stream")
        self.correlation, self.group = extra.get("correlation", -1), extra.get("Process Group Name")
        self.own_time, self.after_rf = self.dur, None

    @property
    def end(self):
        return self.ts + self.dur


class DeviceTrace:
    """Classified events of one device trace, in time order."""

    def __init__(self, document):
        if "traceEvents" not in document:
            raise TraceError("no traceEvents")
        self.operators, self.launches, self.device, self.threads = [], {}, [], {}
        has_step = False
        for event in sorted(document["traceEvents"], key=lambda e: e.get("ts", 0)):
            span = Span(event)
            has_step |= "ProfilerStep" in span.name
            self.sort_in(span, event)
        if not has_step:
            raise TraceError("no ProfilerStep annotation (the reference fails here)")
        for spans in self.threads.values():
            exclusive_times(spans)
        self.order_threads()

    def sort_in(self, span, event):
        if span.cat in ("cpu_op", "user_annotation") and "ProfilerStep" not in span.name:
            self.operators.append(span)
            self.threads.setdefault(span.tid, []).append(span)
        elif span.cat in ("cuda_runtime", "cuda_driver") and span.name in LAUNCH_CALLS:
            if span.correlation in self.launches:
                raise TraceError("two launches with correlation %s" % span.correlation)
            self.launches[span.correlation] = span
        elif span.cat in ("kernel", "gpu_memcpy"):
            self.device.append(span)
        elif span.cat == "ac2g" and (span.ph not in ("s", "f") or event.get("id") is None):
            raise TraceError("bad ac2g event")

    def order_threads(self):
        """Section 3.5: after a silence a thread's operators wait for the latest start on any other thread."""
        starts = {tid: [s.ts for s in spans] for tid, spans in self.threads.items()}
        for tid, spans in self.threads.items():
            current = previous = None
            for span in spans:
                if previous is None or span.ts - previous.ts - previous.dur > GAP_MICROS:
                    current = self.latest_elsewhere(starts, tid, span.ts)
                span.after_rf = current or None
                previous = span

    def latest_elsewhere(self, starts, tid, when):
        best = None
        for other, times in starts.items():
            at = bisect.bisect_left(times, when) - 1
            if other == tid or at < 0:
                continue
            first = self.threads[other][bisect.bisect_left(times, times[at])]       # first of equal start times
            if best is None or first.ts > best.ts:
                best = first
        return best.rf if best else None

    def device_groups(self):
        """Section 3.7: external id of the parent operator -> device operators in time order."""
        plain, without_coalesced = ParentIndex(self.operators), None
        groups = {}
        for span in self.device:
            launch = self.launches.get(span.correlation)
            if launch is None:
                continue
            index = plain
            if "nccl" in span.name.lower():
                if without_coalesced is None:
                    without_coalesced = ParentIndex([s for s in self.operators if s.name != "nccl:coalesced"])
                index = without_coalesced
            parent = index.find(launch, span.external)
            if parent is not None:
                groups.setdefault(parent.external, []).append(span)
        return groups


class ParentIndex:
    """Latest operator before a launch: same thread and external id if there is one, else same thread."""

    def __init__(self, operators):
        self.lists = {}
        for span in operators:
            for key in ((span.tid, span.external), (span.tid,)):
                times, spans = self.lists.setdefault(key, ([], []))
                times.append(span.ts)
                spans.append(span)

    def find(self, launch, external):
        for key in ((launch.tid, external), (launch.tid,)):
            times, spans = self.lists.get(key, ((), ()))
            at = bisect.bisect_left(times, launch.ts) - 1
            if at >= 0:
                return spans[at]
        return None


def exclusive_times(spans):
    """Section 3.4: duration minus the union of the operators inside, in the order (start, duration)."""
    ordered = sorted(spans, key=lambda s: (s.ts, s.dur))
    for at, outer in enumerate(ordered):
        rest, covered = outer.dur, None
        for inner in ordered[at + 1:at + 1 + reach(ordered, at)]:
            if inner.end > outer.end:
                continue
            if covered is None:
                covered = [inner.ts, inner.end]
            elif inner.ts <= covered[1]:
                covered[1] = max(covered[1], inner.end)
            else:
                rest -= covered[1] - covered[0]
                covered = [inner.ts, inner.end]
        if covered is not None:
            rest -= covered[1] - covered[0]
        if rest < 0:
            raise TraceError("negative exclusive time of %s" % outer.name)
        outer.own_time = rest


def reach(ordered, at):
    """How many of the following operators start before or when operator at ends."""
    count, end = 0, ordered[at].end
    while at + 1 + count < len(ordered) and ordered[at + 1 + count].ts <= end:
        count += 1
    return count


# ------------------------------------------------------------------------------------------------ linking (section 3.8)

def attribute(node, name):
    return next((item["value"] for item in reversed(node["attrs"]) if item["name"] == name), None)


def reachable(nodes):
    """Ids of the host nodes under node 1, ascending (section 3.2)."""
    if 1 not in nodes:
        raise TraceError("host trace without node 1")
    below = {}
    for ident, node in nodes.items():
        below.setdefault(node["ctrl_deps"], []).append(ident)
    seen, pending = {1}, [1]
    while pending:
        for child in below.get(pending.pop(), []):
            if child not in seen:
                seen.add(child)
                pending.append(child)
    return sorted(seen)


def match_hosts(nodes, device):
    """host id -> (operator, host id it waits for); both traces name an operator by its record-function id."""
    by_rf = {span.rf: span for span in device.operators if span.rf is not None}
    matches, host_of_rf = {}, {}
    for ident in reachable(nodes):
        rf = attribute(nodes[ident], "rf_id")
        if rf is not None and rf in by_rf:
            host_of_rf[rf] = ident
            matches[ident] = by_rf[rf], host_of_rf.get(by_rf[rf].after_rf)
    return matches


def device_node(host, ident, parent, span):
    """Deep copy of the host node, overwritten and extended; the order of keys is part of the result."""
    node = copy.deepcopy(host)
    node.update(id=ident, ctrl_deps=parent, cat=span.cat, name=span.name, ph=span.ph, inclusive_dur=span.dur,
                exclusive_dur=span.dur, ts=span.ts, stream=span.stream)
    if "ncclDevKernel" in span.name and span.group is not None:
        node["pg_name"] = span.group
    return node


def link(host, document):
    """The linked trace, without sync_dep. The host document is modified in place."""
    if host["schema"] not in LINKABLE:
        raise TraceError("schema %s" % host["schema"])
    device = DeviceTrace(document)
    nodes = {node["id"]: node for node in host["nodes"]}
    matches, groups = match_hosts(nodes, device), device.device_groups()
    renumbered, result = {}, []
    for ident in sorted(nodes):
        node = nodes[ident]
        renumbered[ident] = node["id"] = len(result)
        result.append(node)
        if ident not in matches:
            continue
        span, waits_for = matches[ident]
        node.update(inclusive_dur=span.dur, exclusive_dur=span.own_time, ts=span.ts,
                    inter_thread_dep=None if waits_for is None else renumbered.get(waits_for, waits_for))
        for child in groups.get(span.external, []):
            result.append(device_node(node, len(result), ident, child))
    spare = len(result)
    for node in result:
        if node["ctrl_deps"] not in renumbered:
            renumbered[node["ctrl_deps"]] = spare
            spare += 1
        node["ctrl_deps"] = renumbered[node["ctrl_deps"]]
    host["nodes"] = result
    return host


# ---------------------------------------------------------------------------------------------- conversion (section 4.1)

class Item:
    """A node of the linked trace; entries of attrs override fields of the same name."""

    def __init__(self, node):
        self.raw = dict(node)
        for entry in node.get("attrs", []):
            self.raw[entry["name"]] = entry["value"]
        self.ident, self.name, self.parent = self.raw["id"], self.raw["name"], self.raw["ctrl_deps"]
        self.is_metadata = "process_group:init" in self.name
        self.is_device = not self.is_metadata and self.raw.get("cat") is not None
        self.group = self.raw.get("pg_name", "")


class Conversion:
    def __init__(self, linked):
        for key in ("schema", "pid", "time", "start_ts", "finish_ts", "nodes"):
            if key not in linked:
                raise TraceError("missing key " + key)
        if linked["schema"] not in CONVERTIBLE:
            raise TraceError("schema %s" % linked["schema"])
        self.linked = linked
        self.items = {node["id"]: Item(node) for node in linked["nodes"]}
        self.children = {}
        for item in self.items.values():
            self.children.setdefault(item.parent, []).append(item)
        self.nodes = {}
        self.create_all()
        self.add_dependencies()
        self.drop_isolated()
        self.check_graph()

    def create_all(self):
        for item in self.items.values():
            if item.is_device:
                continue
            self.create(item)
            for child in self.children.get(item.ident, []):
                if child.is_device:
                    self.create(child)

    def create(self, item):
        raw = item.raw
        missing = [name for name in REQUIRED_ATTRS if name not in raw]
        if missing:
            raise TraceError("node %d lacks %s" % (item.ident, missing[0]))
        kind = self.node_type(item)
        attrs = [{"name": name, "int64_val": whole(raw[name])} for name in REQUIRED_ATTRS[:-1]]
        attrs += [{"name": "op_schema", "string_val": raw["op_schema"]}, {"name": "is_cpu_op", "bool_val": not item.is_device},
                  {"name": "stream", "int64_val": whole(raw.get("stream", 0))}]
        if kind == "COMM_COLL_NODE":
            attrs.append({"name": "comm_type", "int64_val": collective(item.name)})
        if kind.startswith("COMM"):
            attrs.append({"name": "comm_size", "int64_val": tensor_bytes(raw["inputs"])})
            if item.group != "":
                attrs.append({"name": "pg_name", "string_val": item.group})
        self.nodes[item.ident] = {
            "id": item.ident, "name": item.name, "type": kind, "start_time_micros": 0, "data_deps": [],
            "ctrl_deps": [item.parent] if item.parent in self.nodes else [],
            "duration_micros": 0 if "Optimizer.step" in item.name else int(raw.get("exclusive_dur", 0)),
            "inputs": as_text(raw["inputs"]), "outputs": as_text(raw["outputs"]), "attr": attrs}

    def node_type(self, item):
        if item.is_metadata:
            return "METADATA_NODE"
        if not item.is_device:
            return "COMP_NODE"
        if "ncclDevKernel_SendRecv" in item.name:
            caller = self.items[item.parent]
            if caller.name == "record_param_comms":
                item.group = caller.group or item.group
                caller = self.items[caller.parent]
            for word, kind in (("send", "COMM_SEND_NODE"), ("recv", "COMM_RECV_NODE"), ("nccl:all_to_all", "COMM_COLL_NODE")):
                if word in caller.name:
                    return kind
        return "COMM_COLL_NODE" if "ncclKernel" in item.name or "ncclDevKernel" in item.name else "COMP_NODE"

    def preorder(self, root):
        """The subtree of root, parents first, children ascending by id."""
        trail, seen = [iter([root])], set()
        while trail:
            item = next(trail[-1], None)
            if item is None:
                trail.pop()
            elif item.ident in self.nodes and item.ident not in seen:
                seen.add(item.ident)
                yield item
                trail.append(iter(sorted(self.children.get(item.ident, []), key=lambda child: child.ident)))

    def add_dependencies(self):
        """Each thread becomes a chain of host nodes; device nodes hang on the host node visited last."""
        for root in [item for item in self.items.values() if item.name in THREAD_NAMES]:
            host = None
            for item in self.preorder(root):
                wanted = [host]
                if not item.is_device:
                    wanted, host = [item.raw.get("inter_thread_dep") or None, host], item.ident
                parents = self.nodes[item.ident]["data_deps"]
                parents += [p for p in dict.fromkeys(wanted) if p is not None and p not in parents]

    def drop_isolated(self):
        needed = {parent for node in self.nodes.values() for parent in node["data_deps"]}
        self.nodes = {i: node for i, node in self.nodes.items() if node["data_deps"] or i in needed}

    def check_graph(self):
        """Every dependency must exist and no cycle may remain (peeling off nodes whose parents are gone)."""
        waiting = {i: len(set(node["data_deps"])) for i, node in self.nodes.items()}
        below = {}
        for i, node in self.nodes.items():
            for parent in set(node["data_deps"]):
                if parent not in self.nodes:
                    raise TraceError("node %d depends on missing node %d" % (i, parent))
                below.setdefault(parent, []).append(i)
        free, done = [i for i, count in waiting.items() if count == 0], 0
        while free:
            done += 1
            for child in below.get(free.pop(), []):
                waiting[child] -= 1
                if waiting[child] == 0:
                    free.append(child)
        if done != len(self.nodes):
            raise TraceError("cyclic dependencies")

    def result(self):
        top = self.linked
        attrs = [{"name": key, ("string_val" if key in ("schema", "time") else "uint64_val"): top[key]}
                 for key in ("schema", "pid", "time", "start_ts", "finish_ts")]
        keys = ["id", "name", "type", "ctrl_deps", "data_deps", "start_time_micros", "duration_micros", "inputs", "outputs", "attr"]
        nodes = [{key: self.nodes[i][key] for key in keys} for i in sorted(self.nodes)]
        if nodes and nodes[0]["id"] < 0:
            raise TraceError("negative id")
        return {"global": {"version": "", "attr": attrs}}, nodes


def whole(value):
    if not isinstance(value, int):
        raise TraceError("not an integer: %r" % (value,))
    return value


def as_text(values):
    """Section 4.2: the notation is that of Python's str()."""
    return {key: str(values[key]) for key in ("values", "shapes", "types")}


def tensor_bytes(inputs):
    total = 0
    for value, kind in zip(inputs["values"], inputs["types"]):
        if kind.startswith("GenericList[Tensor"):
            total += sum(tensor[3] * tensor[4] for tensor in value)
        elif "Tensor" in kind:
            total += value[3] * value[4]
    return total


def collective(name):
    plain = re.sub("[_-]", "", name.lower())
    for word, code in COLLECTIVES:
        if word in plain:
            return code
    if "sendrecv" in plain:
        return 6
    raise TraceError("unknown collective kernel " + name)


# --------------------------------------------------------------------------------------------- files, verification

def read_json(path):
    try:
        with (gzip.open(path, "rt") if path.endswith("gz") else open(path)) as file:
            return json.load(file)
    except json.JSONDecodeError as error:
        raise TraceError("%s: %s" % (path, error)) from None


def link_files(host, device, output):
    linked = link(read_json(host), read_json(device))
    with open(output, "w") as file:
        json.dump(linked, file, indent=4)


def convert_file(source, target):
    metadata, nodes = Conversion(read_json(source)).result()
    write_et(target, metadata, nodes)
    write_jsonl(os.path.splitext(target)[0] + ".jsonl", metadata, nodes)


def same_bytes(first, second):
    with open(first, "rb") as a, open(second, "rb") as b:
        return a.read() == b.read()


def without_sync(path):
    linked = read_json(path)
    for node in linked["nodes"]:
        node.pop("sync_dep", None)
    return json.dumps(linked, indent=4)


def check_case(folder, entry, words, scratch):
    """True when the case gives the recorded result."""
    value = {word: words[i + 1] for i, word in enumerate(words[:-1])}
    try:
        if entry["tool"] == "chakra_trace_link":
            output = os.path.join(scratch, "linked.json")
            link_files(*(os.path.join(folder, value["--chakra-%s-trace" % side]) for side in ("host", "device")), output)
            return entry["exit"] == 0 and open(output).read() == without_sync(os.path.join(folder, value["--output-file"]))
        target = os.path.join(scratch, "trace.et")
        convert_file(os.path.join(folder, value["--input"]), target)
        return entry["exit"] == 0 and same_bytes(target, os.path.join(folder, value["--output"])) and same_bytes(
            os.path.join(scratch, "trace.jsonl"), os.path.join(folder, os.path.splitext(value["--output"])[0] + ".jsonl"))
    except TraceError as error:
        return entry["exit"] != 0 or print("unexpected:", error)


def verify(root):
    counts = {}
    for entry in json.load(open(os.path.join(root, "manifest.json"))):
        words = [str(word) for word in entry.get("args", [])]
        if entry["tool"] != "chakra_trace_link" and "PyTorch" not in words:
            continue
        kind = ("link" if entry["tool"] == "chakra_trace_link" else "convert") + (" rejected" if entry["exit"] else "")
        with tempfile.TemporaryDirectory() as scratch:
            same = check_case(os.path.join(root, entry["dir"]), entry, words, scratch)
        counts.setdefault(kind, [0, 0])[not same] += 1
        if not same:
            print("differs:", entry["case"])
    return counts


def write_random(seed, out, more):
    import torch_pairs
    os.makedirs(out, exist_ok=True)
    path = lambda name: os.path.join(out, name)
    torch_pairs.write_pair(torch_pairs.random_options(random.Random(seed), seed, more), path("host.json"), path("device.json"))
    link_files(path("host.json"), path("device.json"), path("linked.json"))
    convert_file(path("linked.json"), path("trace.et"))


def main():
    if sys.argv[1:2] == ["--random"]:
        words = sys.argv[3:]
        out = words[words.index("--out") + 1] if "--out" in words else "link_case"
        rest = [w for i, w in enumerate(words) if w != "--out" and (i == 0 or words[i - 1] != "--out")]
        return write_random(int(sys.argv[2]), out, rest)
    if sys.argv[1:2] == ["--verify"]:
        counts = verify(sys.argv[2])
        print(json.dumps(counts))
        return 1 if any(bad for _, bad in counts.values()) else 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    linker = commands.add_parser("link")
    for name in ("--rank", "--chakra-host-trace", "--chakra-device-trace", "--output-file"):
        linker.add_argument(name, required=True)
    converter = commands.add_parser("convert")
    converter.add_argument("--input", required=True)
    converter.add_argument("--output", required=True)
    args = parser.parse_args()
    try:
        if args.command == "link":
            link_files(args.chakra_host_trace, args.chakra_device_trace, args.output_file)
        else:
            convert_file(args.input, args.output)
    except TraceError as error:
        print("error:", error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
