#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of collectives in both formats, made by rule: plan_inputs.py NAME RANKS [FAULT] prints one.

The algorithms are textbook ones; what each must compute is known without running it."""
import json
import sys
from xml.sax.saxutils import quoteattr


def element(name, attributes, children=()):
    text = "<" + name + "".join(f" {k}={quoteattr(str(v))}" for k, v in attributes)
    if not children:
        return text + "/>"
    return text + ">\n" + "\n".join(children) + f"\n</{name}>"


def step(number, kind, src, dst, count=1, after=(-1, -1)):
    return element("step", [("s", number), ("type", kind), ("srcbuf", src[0]), ("srcoff", src[1]),
                            ("dstbuf", dst[0]), ("dstoff", dst[1]), ("cnt", count), ("depid", after[0]),
                            ("deps", after[1]), ("hasdep", 0)])


def block(number, send, recv, steps, channel=0):
    return element("tb", [("id", number), ("send", send), ("recv", recv), ("chan", channel)],
                   [step(i, *s) for i, s in enumerate(steps)])


def algorithm(kind, ranks, inplace, sizes, blocks):
    gpus = [element("gpu", [("id", r), ("i_chunks", sizes[0]), ("o_chunks", sizes[1]), ("s_chunks", sizes[2])],
                    blocks(r)) for r in range(ranks)]
    return element("algo", [("name", "made by rule"), ("proto", "Simple"), ("nchannels", 1),
                            ("nchunksperloop", max(sizes[:2])), ("ngpus", ranks), ("coll", kind),
                            ("inplace", inplace)], gpus) + "\n"


def ring_all_reduce(n, fault):
    def steps(r):
        # Chunk c starts at rank c; it is complete at the rank before that, and then goes round again.
        out = [("s", ("i", r), ("i", r))]
        for k in range(1, n - 1):
            c = (r - k) % n
            out.append(("rrs", ("i", c), ("i", c)))
        last = (r + 1) % n
        out.append(("rrcs" if fault != "forget" else "rcs", ("i", last), ("i", last)))
        for k in range(n - 2):
            c = (r - k) % n
            out.append(("rcs", ("i", c), ("i", c)))
        out.append(("r", ("i", (r + 2) % n), ("i", (r + 2) % n)))
        if fault == "stop" and r == 1:
            out = out[:-2]
        return out
    return algorithm("allreduce", n, 1, (n, 0, 0),
                     lambda r: [block(0, (r + 1) % n, (r - 1) % n, steps(r))])


def ring_all_gather(n, fault):
    del fault
    def steps(r):
        out = [("cpy", ("i", 0), ("o", r)), ("s", ("o", r), ("o", r))]
        out += [("rcs", ("o", (r - k) % n), ("o", (r - k) % n)) for k in range(1, n - 1)]
        return out + [("r", ("o", (r + 1) % n), ("o", (r + 1) % n))]
    return algorithm("allgather", n, 0, (1, n, 0),
                     lambda r: [block(0, (r + 1) % n, (r - 1) % n, steps(r))])


def ring_reduce_scatter(n, fault):
    del fault
    def steps(r):
        out = [("s", ("i", (r - 1) % n), ("i", 0))]
        out += [("rrs", ("i", (r - k) % n), ("i", 0)) for k in range(2, n)]
        return out + [("rrc", ("i", r), ("o", 0))]
    return algorithm("reducescatter", n, 0, (n, 1, 0),
                     lambda r: [block(0, (r + 1) % n, (r - 1) % n, steps(r))])


def pairs_all_to_all(n, fault):
    def blocks(r):
        out = [block(0, -1, -1, [("cpy", ("i", r), ("o", r))])]
        for k in range(1, n):
            to, back = (r + k) % n, (r - k) % n
            if fault == "swap" and r == 0 and k == 1:
                out.append(block(k, to, back, [("s", ("i", back), ("o", 0)), ("r", ("i", 0), ("o", back))]))
            else:
                out.append(block(k, to, back, [("s", ("i", to), ("o", 0)), ("r", ("i", 0), ("o", back))]))
        return out
    return algorithm("alltoall", n, 0, (n, n, 0), blocks)


def pairs_all_reduce(n, fault):
    """Through scratch, in two thread blocks per peer that wait for each other's steps."""
    def blocks(r):
        out = []
        for k in range(1, n):
            to, back = (r + k) % n, (r - k) % n
            out.append(block(k, to, back, [("s", ("i", 0), ("s", 0), n), ("r", ("i", 0), ("s", (k - 1) * n), n)]))
        # After the sends have read the input.  One thread block adds up; each "re" waits for its data.
        waits = [("nop", ("i", -1), ("o", -1), 0, (k, 0)) for k in range(1, n)]
        adds = [("re", ("s", (k - 1) * n), ("i", 0), n, (k, 1) if fault != "early" else (-1, -1)) for k in range(1, n)]
        return [block(0, -1, -1, waits + adds)] + out
    return algorithm("allreduce", n, 1, (n, 0, n * (n - 1)), blocks)


def plan(kind, ranks, protocol, gpus, inplace=True):
    return json.dumps({"name": "made by rule", "collective": kind, "protocol": protocol, "inplace": inplace,
                       "reuse_resources": False, "num_threads_per_block": 1024,
                       "use_double_scratch_buffer": False, "buffer_alignment": 16, "min_message_size": 0,
                       "max_message_size": 2**64 - 1, "gpus": gpus}, indent=1) + "\n"


def gpu(r, n, chunks, channel, remotes, blocks, semaphores=()):
    peers = [p for p in range(n) if p != r]
    return {"id": r, "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": chunks[2],
            "channels": [{"channel_type": channel, "connected_to": peers}],
            "remote_buffers": [{"rank": p, "type": remotes, "access_channel_types": [channel]} for p in peers],
            "semaphores": [{"init_value": v} for v in semaphores],
            "threadblocks": [{"id": i, "ops": ops,
                              "channels": [{"channel_type": channel, "channel_ids": list(range(n - 1))}],
                              "remote_buffer_refs": [{"access_channel_type": channel,
                                                      "remote_buffer_ids": list(range(n - 1))}]}
                             for i, ops in enumerate(blocks)]}


def local(kind, index, size=1):
    return {"type": kind, "index": index, "size": size}


def remote(number, index, size=1):
    return {"buffer_id": number, "index": index, "size": size}


def put_all_gather(n, fault, channel="memory"):
    every = list(range(n - 1))
    def ops(r):
        put = {"name": "put", "src_buff": [local("o", r)] * (n - 1), "channel_type": channel, "channel_ids": every,
               "dst_buff": [remote(i, r) for i in every]}
        after = [{"name": "signal", "channel_type": channel, "channel_ids": every}]
        wait = {"name": "wait", "channel_type": channel, "channel_ids": every}
        if fault == "deaf" and r == 0:
            after = []
        if fault == "astray" and r == 0: # channel i leads to another GPU than buffer i
            put["dst_buff"].reverse()
        if channel == "port":
            return [dict(put, name="pwsf"), wait]
        return [put, {"name": "nop"}] + after + [wait]
    return plan("allgather", n, "Simple", [gpu(r, n, (1, n, 0), channel, "o", [ops(r)]) for r in range(n)])


def port_all_gather(n, fault):
    return put_all_gather(n, fault, "port")


def read_all_reduce(n, fault):
    """Each rank reads its chunk everywhere, adds up and writes it back; two thread blocks share each step."""
    every = list(range(n - 1))
    def ops(r, part):
        tbg = {"tb_id": part, "tbg_size": 2}
        meet = {"name": "barrier", "barrier_id": 0, "num_threadblocks": 2}
        talk = [{"name": "signal", "channel_type": "memory", "channel_ids": every},
                {"name": "wait", "channel_type": "memory", "channel_ids": every}]
        work = {"name": "rres", "channel_type": "memory", "reduce_op": "sum", "tbg_info": tbg,
                "src_buff": [local("i", r)] + [remote(i, r) for i in every],
                "dst_buff": [local("i", r)] + [remote(i, r) for i in every]}
        if fault == "half" and part == 1:
            work = {"name": "nop"}
        return (talk if part == 0 else []) + [meet, work, meet] + (talk if part == 0 else [])
    return plan("allreduce", n, "Simple", [gpu(r, n, (n, n, 0), "memory", "i", [ops(r, 0), ops(r, 1)])
                                           for r in range(n)])


def packet_all_reduce(n, fault):
    every = list(range(n - 1))
    def ops(r):
        slot = lambda p: r - (r > p)
        peers = [p for p in range(n) if p != r]
        push = {"name": "ppkt", "channel_type": "memory", "src_buff": [local("i", 0, n)] * (n - 1),
                "dst_buff": [remote(i, slot(p) * n, n) for i, p in enumerate(peers)]}
        add = {"name": "repkt", "reduce_op": "sum",
               "src_buff": [local("i", 0, n)] + [local("s", i * n, n) for i in every],
               "dst_buff": [local("i", 0, n)]}
        return [add, push] if fault == "order" else [push, add]
    return plan("allreduce", n, "LL", [gpu(r, n, (n, n, n * (n - 1)), "memory", "s", [ops(r)]) for r in range(n)])


def pipeline_all_gather(n, fault):
    """In pieces: one thread block writes, another waits; a semaphore of two pieces lies between them."""
    del fault
    every = list(range(n - 1))
    def blocks(r):
        context = {"unit_size": 65536, "num_chunks": 1}
        put = {"name": "put", "src_buff": [local("o", r)] * (n - 1), "channel_type": "memory",
               "dst_buff": [remote(i, r) for i in every]}
        return [[{"name": "pipeline", "iter_context": context, "ops": [
                    {"name": "sem_acquire", "semaphore_ids": [0]}, put,
                    {"name": "signal", "channel_type": "memory", "channel_ids": every}]}],
                [{"name": "pipeline", "iter_context": context, "ops": [
                    {"name": "wait", "channel_type": "memory", "channel_ids": every},
                    {"name": "sem_release", "semaphore_ids": [0]}]}]]
    return plan("allgather", n, "Simple", [gpu(r, n, (1, n, 0), "memory", "o", blocks(r), [2]) for r in range(n)])


def switch_all_reduce(n, fault):
    del fault
    gpus = [gpu(r, n, (n, n, 0), "memory", "i",
                [[{"name": "glres", "channel_type": "switch", "src_buff": [{"switch_channel_id": 0, "index": r, "size": 1}],
                   "dst_buff": [{"switch_channel_id": 0, "index": r, "size": 1}]}]]) for r in range(n)]
    return plan("allreduce", n, "Simple", gpus)


PLANS = {f.__name__: f for f in (ring_all_reduce, ring_all_gather, ring_reduce_scatter, pairs_all_to_all,
                                 pairs_all_reduce, put_all_gather, port_all_gather, read_all_reduce,
                                 packet_all_reduce, pipeline_all_gather, switch_all_reduce)}

if __name__ == "__main__":
    sys.stdout.write(PLANS[sys.argv[1]](int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""))
