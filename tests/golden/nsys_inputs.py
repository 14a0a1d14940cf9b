# SPDX-License-Identifier: Apache-2.0
"""Exports of Nsight Systems from a description of a job: what test_nccl runs on.

A job has nodes with GPUs (pid, device), communicators (hash, id, members, rings, trees, announce) and operations in the order
in which each GPU does them.  Every GPU has a clock, which each row moves on; kernels of a GPU run after one another unless an
operation says how far behind the clock its kernel starts."""

import json
import sqlite3

COLL_TYPES = {"Broadcast": 0, "Reduce": 1, "AllGather": 2, "ReduceScatter": 3, "AllReduce": 4}
KERNELS = {"AllReduce": "AllReduce_Sum_f32_RING_LL", "AllGather": "AllGather_RING_LL", "Reduce": "Reduce_Sum_f32_RING_LL",
           "ReduceScatter": "ReduceScatter_Sum_f32_RING_LL", "Broadcast": "Broadcast_RING_LL", "Send": "SendRecv", "Recv": "SendRecv"}
DETAIL, MARK, CALL = 5, 10, 20          # how far a row moves the clock


class Gpu:
    def __init__(self, node, pid, device, clock):
        self.node, self.pid, self.device, self.clock = node, pid, device, clock
        self.marks, self.kernels, self.busy = [], [], 0

    def mark(self, text, step=MARK, length=None):
        self.marks.append((self.clock, None if length is None else self.clock + length, f"{text}{self.pid}"))
        self.clock += step

    def launch(self, operation, more):
        start = max(self.clock, self.busy) + more.get("gap", operation.get("gap", 500))
        if "overlap" in more or "overlap" in operation:
            start = self.clock + more.get("overlap", operation.get("overlap"))
        end = start + more.get("dur", operation.get("dur", 10000))
        self.busy = max(self.busy, end)
        name = operation.get("kname", f"ncclDevKernel_{KERNELS[operation['op']]}(ncclDevComm*, unsigned long, ncclWork*)")
        self.kernels.append((start, end, name, more.get("kstream", operation.get("kstream"))))


def announce(comm, gpus):
    members, word = comm["members"], f"commHash {comm['hash']}"
    for rank, member in enumerate(members):
        gpus[member].mark(f"{word} commId {comm['id']} rank {rank} nranks {len(members)} pid ")
    for channel, ring in enumerate(comm.get("rings", [])):
        for place, rank in enumerate(ring):
            before, after = ring[place - 1], ring[(place + 1) % len(ring)]
            gpus[members[rank]].mark(f"{word} Rings [{channel}] {before}->{rank}->{after} pid ")
    for channel, tree in enumerate(comm.get("trees", [])):
        for rank in sorted(tree, key=int):
            parent, children = tree[rank]
            below = "/".join(str(child) for child in (children + [-1, -1, -1])[:3])
            gpus[members[int(rank)]].mark(f"{word} Trees [{channel}] {below}->{rank}->{parent} pid ")


def call(gpu, op, comms):
    gpu.mark(f"nccl{op['op']}(): commHash {comms[op['comm']]['hash']}, stream {op['stream']}, data_size {op.get('bytes', 0)}, "
             f"type_size {op.get('type_size', 4)}, {op.get('extra', '')}pid ", CALL, op.get("api", 100))


def details(gpu, index, op, comms):
    comm = comms[op["comm"]]
    if op["op"] in ("Send", "Recv"):
        for work in op["work"]:
            size = work["bytes"]
            gpu.mark(f"Bytes {size} nWarps 16 p2pType {1 if op['op'] == 'Send' else 2} peer {work.get('peer', op.get('peer', 0))} "
                     f"proto {work.get('proto', 2)} countHi32 {size >> 32} countLo32 {size & 0xffffffff} chunkSize {work['chunk']} pid ",
                     DETAIL)
        return
    gpu.mark(f"collType {COLL_TYPES[op['op']]} root {op.get('root', 0)} redOp 0 algo {op['algo']} proto {op['proto']} "
             f"commHash {comm['hash']} stream {op['stream']} data_size {op.get('bytes', 0)} type_size {op.get('type_size', 4)} "
             f"chunkSize {op.get('chunkSize', 0)} chunkCount 0 chunkSteps {op['chunkSteps']} sliceSteps {op['sliceSteps']} "
             f"stepSize {op['stepSize']} pid ", DETAIL)
    for work in op["work"]:
        target = op.get("recvbuff", 150000000000000)
        source = op.get("sendbuff", 140000000000000)
        if op.get("inplace_ag"):
            source = target + comm["members"].index(index) * work["count"]
        gpu.mark(f"nWarps 16 count {work['count']} chunkCount {work['chunkCount']} workCount {work['workCount']} lastChunkCount "
                 f"{work['lastChunkCount']} workOffset {work.get('workOffset', 0)} sendbuff {source} recvbuff {target} pid ", DETAIL)


def perform(gpus, op, comms):
    for index in op["gpus"]:
        gpu, body = gpus[index], [op]
        if op["op"] == "group":
            body = [part for part in op["body"] if index in part.get("gpus", op["gpus"])]
            gpu.mark("ncclGroupStart(): pid ")
        for part in body:
            call(gpu, part, comms)
        for part in body:
            details(gpu, index, part, comms)
        if op["op"] == "group":
            gpu.mark("ncclGroupEnd(): pid ")
        if body:
            gpu.launch(body[0], op if op["op"] == "group" else {})
        gpu.clock += op.get("think", 1000)


def make_gpus(job):
    gpus = []
    for node in job["nodes"]:
        for gpu in node["gpus"]:
            gpus.append(Gpu(node["id"], gpu["pid"], gpu.get("device", 0), job.get("t0", 1000000) + 137 * len(gpus)))
    for comm in job["comms"]:
        if comm.get("announce", True):
            announce(comm, gpus)
    has_window = job.get("profile", True)
    for gpu in gpus if has_window else ():
        gpu.mark("nsys profiling start, pid: ")
    for op in job["ops"]:
        perform(gpus, op, job["comms"])
    for gpu in gpus if has_window else ():
        gpu.clock = max(gpu.clock, gpu.busy) + 100
        gpu.mark("nsys profiling stopped, pid: ")
    return gpus


def write_export(path, gpus):
    base = sqlite3.connect(path)
    base.executescript("""
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
            demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL)""")
    names = {}
    for gpu in gpus:
        process = 1 << 48 | gpu.pid << 24
        rows = gpu.marks + [(5, 9, "iteration 0"), (6, 9, "iteration 1"), (7, None, None)]
        base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?)",
                         [(start, end, 34 if end is None else 59, text, process | gpu.pid) for start, end, text in rows])
        for start, end, name, stream in gpu.kernels + [(50, 60, "ampere_sgemm_128x64_tn", 7)]:
            number = names.setdefault(name, len(names) + 1)
            base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 1, ?, 0, ?, ?, ?)",
                         (start, end, gpu.device, stream, process, number, number))
    base.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, name) for name, number in names.items()])
    base.commit()
    base.close()


def write_job(job, folder):
    """folder/sqlite/*.sqlite, and folder/log-*.out where the job has a log."""
    exports = folder / "sqlite"
    exports.mkdir(parents=True)
    gpus = make_gpus(job)
    if job.get("style", "nid") == "nid":
        for node in job["nodes"]:
            write_export(exports / f"trace_nid{node['id']}.sqlite", [gpu for gpu in gpus if gpu.node == node["id"]])
    else:
        for index, gpu in enumerate(gpus):
            write_export(exports / f"profile_4711_{gpu.node}_{index}.sqlite", [gpu])
    if "nccl_log" in job:
        (folder / job["nccl_log"]["name"]).write_text("\n".join(job["nccl_log"]["lines"]) + "\n")
    return exports


def write_table(table, path):
    path.write_text(json.dumps({event: {size: [time] for size, time in times.items()} for event, times in table.items()}))
