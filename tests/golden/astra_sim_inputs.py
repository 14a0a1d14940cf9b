# SPDX-License-Identifier: Apache-2.0
"""Makes the inputs of the simulator's golden cases: traces, system, network, memory and group files.

    write(table, folder)        everything that the cases of the table need
    cases(table)                the cases, in the form astra_sim_runs.run takes

The table, astra_sim_cases.json, has numbers and names only.  A workload names one of the recipes below and its
parameters; a recipe says what one rank does, node by node.  Equal traces are written once and linked."""

import json
import os
import pathlib

TYPES = {"INVALID": 0, "METADATA": 1, "MEM_LOAD": 2, "MEM_STORE": 3, "COMP": 4, "SEND": 5, "RECV": 6, "COLL": 7}
COLLECTIVES = {"AR": 0, "REDUCE": 1, "AG": 2, "BCAST": 5, "A2A": 6, "RS": 7, "BARRIER": 9}

# ---- the .et format: records of protobuf, each after its length ----

INT32, INT64, UINT64, BOOL, STRING = 7, 9, 13, 27, 29  # fields of an attribute's value; a list has the next number
MEMBER = {"comm_src": INT32, "comm_dst": INT32, "comm_tag": INT32, "comm_priority": INT32, "tensor_size": UINT64}


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    head = block(1, name.encode())
    if isinstance(value, list):
        if isinstance(value[0], bool):
            return head + block(BOOL + 1, block(1, bytes(value)))
        return head + block(STRING + 1, b"".join(block(1, text.encode()) for text in value))
    if isinstance(value, str):
        return head + block(STRING, value.encode())
    return head + number(BOOL if isinstance(value, bool) else MEMBER.get(name, INT64), value)


class Rank:
    """What one rank does.  Each method adds a node and gives its id, so that later ones can come after it."""

    def __init__(self, rank, count):
        self.rank, self.count = rank, count
        self.records, self.next_id = [], 0

    def add(self, kind, attrs=(), after=(), ctrl=(), us=0, id=None, name=None, inputs=None):
        id = self.next_id if id is None else id
        self.next_id = id + 1
        record = number(1, id) if id else b""
        record += block(2, (name or f"n{id}").encode())
        record += number(3, TYPES[kind]) if TYPES[kind] else b""
        for field, parents in ((4, ctrl), (5, after)):
            record += block(field, b"".join(varint(parent) for parent in parents)) if parents else b""
        record += number(7, us) if us else b""
        record += block(8, block(1, inputs.encode())) if inputs else b""
        record += b"".join(block(10, attribute(*attr)) for attr in dict(attrs).items())
        self.records.append(record)
        return id

    def comp(self, us=0, ops=None, tensor=None, cpu=False, id=None, more=(), **node):
        attrs = {"is_cpu_op": cpu, "num_ops": ops, "tensor_size": tensor}
        attrs = {key: value for key, value in attrs.items() if value is not None}
        id = self.next_id if id is None else id
        return self.add("COMP", {**attrs, **dict(more)}, us=us, id=id, name=f"comp_{id}", **node)

    def collective(self, kind, size, group=None, dims=None, priority=None, id=None, more=(), **node):
        attrs = {"is_cpu_op": False, "comm_type": COLLECTIVES[kind], "comm_size": size,
                 "pg_name": None if group is None else str(group), "involved_dim": dims, "comm_priority": priority}
        attrs = {key: value for key, value in attrs.items() if value is not None}
        id = self.next_id if id is None else id
        return self.add("COLL", {**attrs, **dict(more)}, id=id, name=f"{kind}_{id}", **node)

    def message(self, kind, peer, size, tag=0, **node):
        ends = (self.rank, peer) if kind == "SEND" else (peer, self.rank)
        attrs = {"is_cpu_op": False, "comm_src": ends[0], "comm_dst": ends[1], "comm_size": size, "comm_tag": tag}
        return self.add(kind, attrs, name=f"{kind.lower()}_{self.next_id}", **node)

    def send(self, peer, size, tag=0, **node):
        return self.message("SEND", peer % self.count, size, tag, **node)

    def recv(self, peer, size, tag=0, **node):
        return self.message("RECV", peer % self.count, size, tag, **node)

    def memory(self, kind, size, **node):
        return self.add(kind, {"is_cpu_op": False, "tensor_size": size}, name=f"mem_{self.next_id}", **node)

    def encode(self):
        metadata = block(1, b"0.0.4")
        return b"".join(varint(len(record)) + record for record in [metadata, *self.records])


# ---- recipes ----

def nodes(r, by_rank=None, all=None):
    """Each node spelled out: for all ranks, or by rank with "other" for the rest."""
    for node in all if all is not None else by_rank.get(str(r.rank), by_rank.get("other")):
        node = dict(node)
        method = getattr(r, node.pop("do"))
        method(**node)


def collective(r, kind, size, block=None, stride=None, group=None, dims=None):
    """One collective; of groups, each `block` ranks in a row or the ranks `stride` apart."""
    if block:
        group = 1 + r.rank // block
    if stride:
        group = 1 + r.rank % stride
    r.collective(kind, size, group=group, dims=dims)


def collectives(r, kinds, step, chained):
    """Several, growing in size; in a row, or all at once with rising priorities."""
    last = []
    for i, kind in enumerate(kinds):
        one = r.collective(kind, (i + 1) * step, after=last, priority=None if chained else i)
        last = [one] if chained else []


def pair(r, src, dst, size):
    if r.rank == src:
        r.send(dst, size, 7)
    elif r.rank == dst:
        r.recv(src, size, 7)
    else:
        r.comp(1)


def ladder(r, distance, size):
    """All send to the rank some way on, at once."""
    r.send(r.rank + distance, size, 1)
    r.recv(r.rank - distance, size, 1)


def incast(r, step):
    """All send to rank 0, each a message of its own size."""
    if r.rank:
        r.send(0, step * r.rank, 5)
        return
    for peer in range(1, r.count):
        r.recv(peer, step * peer, 5)


def ping_pong(r, rounds, size):
    if r.rank > 1:
        r.comp(2)
        return
    for i in range(rounds):
        move = r.send if i % 2 == r.rank else r.recv
        move(1 - r.rank, size + i, i, after=[i - 1] if i else [])


def burst(r, count, size, step):
    """Rank 0 sends several messages to rank 1; with step 0 all alike, and received one after the other."""
    if r.rank > 1:
        r.comp()
        return
    for i in range(count):
        if r.rank == 0:
            r.send(1, size + step * i, i if step else 0)
        else:
            r.recv(0, size + step * i, i if step else 0, ctrl=[i - 1] if i and not step else [])


def pipeline(r, micro, size, us):
    """Micro-batches from rank to rank: receive, compute, send on."""
    before = []
    for i in range(micro):
        received = [r.recv(r.rank - 1, size, i)] if r.rank > 0 else []
        before = [r.comp(us, after=received + before)]
        if r.rank < r.count - 1:
            r.send(r.rank + 1, size, i, after=before)


def training(r, layers, hidden, seq, tp, groups=True):
    """A transformer's step: per layer compute and a tensor-parallel all-reduce, forwards and (twice the work)
    backwards, where each layer's data-parallel all-reduce runs beside what follows."""
    tensor_groups = r.count // tp
    of_tensor = 1 + r.rank // tp if groups else None
    of_data = 1 + tensor_groups + r.rank % tp if groups else None
    activations, weights = seq * hidden * 2, 12 * hidden * hidden * 2 // tp
    last = []
    for work in [1] * layers + [2] * layers:
        ops = work * 2 * seq * 12 * hidden * hidden // tp
        last = [r.comp(7 * work, ops=ops, tensor=weights + 2 * activations, after=last)]
        if tp > 1:
            last = [r.collective("AR", activations, after=last, group=of_tensor)]
        if work == 2 and (tensor_groups > 1 or not groups):
            r.collective("AR", weights, after=last, group=of_data)


def layers(r, rows, in_ns=False):
    """Data-parallel training, layer by layer.  A row: forward, input gradient, weight gradient (microseconds, or
    nanoseconds as operations of a roofline), bytes of the all-reduce."""
    def comp(time, after):
        return r.comp(ops=time * 1000 + 500, tensor=1, after=after) if in_ns else r.comp(time, after=after)
    last = []
    for forward, _, _, _ in rows:
        last = [comp(forward, last)]
    for i, (_, inputs, weights, size) in reversed(list(enumerate(rows))):
        last = [comp(weights, last)]
        r.collective("AR", size, after=last)
        if i:
            last = [comp(inputs, last)]


def skew(r):
    """Ranks that come to the same collectives at different times."""
    last = [r.comp(r.rank * 7 % 5)]
    last = [r.collective("AR", 1 << 20, after=last)]
    last = [r.comp(r.rank * 3 % 4, after=last)]
    last = [r.collective("RS", 1 << 20, after=last)]
    r.collective("A2A", 300000, after=last)


def overlap(r):
    """Compute and collectives that do not wait for each other; ids that do not ascend."""
    r.comp(10 + r.rank, id=5)
    r.comp(7, id=1)
    r.comp(1, id=9, ctrl=[1])
    r.collective("AR", 1 << 20, id=2)
    r.collective("AG", 1 << 16, id=3, after=[1])
    r.comp(2, id=4, after=[3])


def load_store(r, load, step, us, store):
    loaded = r.memory("MEM_LOAD", load + step * r.rank)
    r.memory("MEM_STORE", store, after=[r.comp(us, after=[loaded])])


def load_reduce_store(r, step, load, size):
    loads = [r.memory("MEM_LOAD", step * (r.rank + 1)), r.memory("MEM_LOAD", load)]
    r.memory("MEM_STORE", step, after=[r.collective("AR", size, after=loads)])


def process_groups(r, size):
    """Groups as PyTorch's metadata declares them."""
    half = r.count // 2
    groups = [{"pg_name": "3", "ranks": list(range(half))}, {"pg_name": "4", "ranks": list(range(half, r.count))}]
    declared = r.add("METADATA", {"is_cpu_op": False}, inputs="['" + json.dumps(groups) + "']")
    r.collective("AR", size, after=[declared], group=3 + r.rank // half)


def ring_program(r, size, us=0):
    """An all-reduce as a custom collective: round the ring twice, reducing the first time."""
    last = []
    for step in range(2 * (r.count - 1)):
        r.send(r.rank + 1, size, step, after=last)
        received = r.recv(r.rank - 1, size, step, after=last)
        last = [r.comp(us, after=[received]) if step < r.count - 1 else received]


def direct_program(r, size, descending=False):
    """Every rank to every other, all at once."""
    peers = [r.rank + k for k in range(1, r.count)]
    if descending:
        peers.reverse()
    for peer in peers:
        r.send(peer, size, 3)
    for peer in peers:
        r.recv(peer, size, 3)


def tree_program(r, size):
    """Up a binary tree to rank 0, reducing, and down again."""
    children = [child for child in (2 * r.rank + 1, 2 * r.rank + 2) if child < r.count]
    ready = [r.comp(after=[r.recv(child, size, 1)]) for child in children]
    if r.rank:
        parent = (r.rank - 1) // 2
        ready = [r.recv(parent, size, 2, after=[r.send(parent, size, 1, after=ready)])]
    for child in children:
        r.send(child, size, 2, after=ready)


RECIPES = {recipe.__name__: recipe for recipe in (
    nodes, collective, collectives, pair, ladder, incast, ping_pong, burst, pipeline, training, layers, skew, overlap,
    load_store, load_reduce_store, process_groups, ring_program, direct_program, tree_program)}


# ---- files ----

def read_table():
    return json.loads(pathlib.Path(__file__).with_name("astra_sim_cases.json").read_text())


def save(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_workload(folder, make, ranks, **parameters):
    written = {}
    for rank in range(ranks):
        r = Rank(rank, ranks)
        RECIPES[make](r, **parameters)
        content, path = r.encode(), folder / f"w.{rank}.et"
        if content in written:
            os.link(written[content], path)
        else:
            save(path, content)
            written[content] = path


def network_text(network):
    """Rows of shape, NPUs, bandwidth and latency a dimension; or the four lists, for those that do not fit."""
    keys = ("topology", "npus_count", "bandwidth", "latency")
    if isinstance(network, list):
        network = dict(zip(keys, zip(*network)))
    return "".join(f"{key}: [ {', '.join(str(value) for value in network[key])} ]\n" for key in keys)


def system_text(table, name):
    values = {**table["system_defaults"], **table["systems"][name]}
    return json.dumps({key: value for key, value in values.items() if value is not None}, indent=1) + "\n"


def write(table, folder):
    folder = pathlib.Path(folder)
    for name in table["systems"]:
        save(folder / "system" / f"{name}.json", system_text(table, name))
    for name, network in table["networks"].items():
        save(folder / "network" / f"{name}.yml", network_text(network))
    for part in ("memory", "group"):
        for name, values in table[part].items():
            save(folder / part / f"{name}.json", json.dumps(values) + "\n")
    for name, text in table["other_files"].items():
        save(folder / name, text)
    for name, workload in table["workloads"].items():
        write_workload(folder / "workloads" / name, **workload)


def expanded(expect):
    """What goes without saying: all is exposed, and ranks finish in their order."""
    if "cycles" not in expect:
        return expect
    return {"exposed": expect["cycles"], "order": "ascending", **expect}


def cases(table):
    for row in table["cases"]:
        case = {"id": row["id"], "npus": row["npus"], "workload": row["workload"],
                "system": f"system/{row['system']}.json", "network": f"network/{row['network']}.yml",
                "memory": f"memory/{row.get('memory', 'none')}.json", "args": row.get("args", {})}
        if "group" in row:
            case["group"] = f"group/{row['group']}.json"
        case["expect"] = {}
        for backend, expect in row["expect"].items():
            for one in ("unaware", "aware") if backend == "both" else (backend,):
                case["expect"][one] = expanded(expect)
        yield case
