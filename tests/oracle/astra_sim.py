#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of ASTRA-sim with the analytical network back ends, or over the packet-level network.

Section numbers refer to docs/spec/astra-sim.md unless another file is named.  The aim is to be short and to follow the
text, not to be fast.

    astra_sim.py --backend unaware|aware --workload-configuration PREFIX --system-configuration FILE
                 --network-configuration FILE --remote-memory-configuration FILE [further options of section 1]
    astra_sim.py --backend packet ...             the same over the packet-level network: config.txt as network
                                                  configuration, plus --logical-topology-configuration FILE
    astra_sim.py --random SEED [--out FOLDER] [--backend packet]
                                                  write a random small case and its expected result
    astra_sim.py --check FOLDER                   run the cases of FOLDER (layout of the golden data astra-sim with the traces
                                                  unpacked, or the collective cases of the golden data packet-network)

Where the reference crashes, loops for ever or has undefined behaviour (section 11) the result is
{"abnormal_end": reason} and the exit status is 3.
"""
import argparse
import json
import math
import os
import random
import struct
import sys
from collections import defaultdict, deque

import etlib
import packet_network
from events import EventQueue

CLOCKWISE, ANTICLOCKWISE = 1, -1
GROUP_RING_DELAY = 10                       # 5.5
COLLECTIVE_TAG_BASE = 500_000_000           # 5.6
RENDEZVOUS_TAG_OFFSET = 1_000_000_000       # 5.6
RENDEZVOUS_SIZE = 8192
GROUP_STREAM_IDS = 1_000_000                # 5.3
PACKET_LIMIT_NS = 5 * 10**9                 # a run whose flows hang is given up then
CONFIGURATION_KEYS = {"ALL_REDUCE": "all-reduce", "ALL_GATHER": "all-gather",
                      "REDUCE_SCATTER": "reduce-scatter", "ALL_TO_ALL": "all-to-all"}
COLLECTIVE_NAMES = {number: name for name, number in etlib.COLLECTIVE_TYPES.items()}


class AbnormalEnd(Exception):
    """The reference does not end normally here (section 11)."""


# ---- dependencies (sections 2 and 12) ---------------------------------------------------------------------------

class IterationOrderedSet:
    """Set of ids with the iteration order of section 12.

    `runs` maps an occupied bucket to its ids; both the buckets and the ids of a bucket are iterated newest first.
    """
    BUCKET_COUNTS = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697)

    def __init__(self, ids=()):
        self.bucket_count, self.limit, self.size, self.runs = 1, 0, 0, {}
        for item in ids:
            self.add(item)

    def __iter__(self):
        for run in reversed(list(self.runs.values())):
            yield from reversed(run)

    def __len__(self):
        return self.size

    def __contains__(self, item):
        return item in self.runs.get(item % self.bucket_count, ())

    def _place(self, item):
        self.runs.setdefault(item % self.bucket_count, []).append(item)

    def add(self, item):
        if item in self:
            return
        if self.size + 1 > self.limit:
            self._grow()
        self._place(item)
        self.size += 1

    def _grow(self):
        need = max(self.size + 1, 11 if self.limit == 0 else 0)
        if need >= self.bucket_count:
            order, wanted = list(self), max(need + 1, 2 * self.bucket_count)
            self.bucket_count = next(count for count in self.BUCKET_COUNTS if count >= wanted)
            self.runs = {}
            for item in order:
                self._place(item)
        self.limit = self.bucket_count

    def remove(self, item):
        bucket = item % self.bucket_count
        self.runs[bucket].remove(item)
        if not self.runs[bucket]:
            del self.runs[bucket]
        self.size -= 1


class DependencyGraph:
    """Which nodes of one trace are waiting, free and running."""

    def __init__(self, nodes):
        self.nodes = {node.id: node for node in nodes}      # a later body replaces an earlier one
        self.parents, self.children, self.running = defaultdict(set), defaultdict(IterationOrderedSet), set()
        known = IterationOrderedSet()
        for node in nodes:
            known.add(node.id)
            for parent in IterationOrderedSet(node.data_deps + node.ctrl_deps):
                known.add(parent)
                self.parents[node.id].add(parent)
                self.children[parent].add(node.id)
        self._check(nodes)
        self.free = IterationOrderedSet(item for item in known if not self.parents[item])

    def _check(self, nodes):
        if not nodes:
            raise AbnormalEnd("empty trace")
        if any(item not in self.nodes for item in self.children):
            raise AbnormalEnd("dependency on a node that is not in the trace")
        for dependencies in (lambda n: n.data_deps, lambda n: n.ctrl_deps, lambda n: n.data_deps + n.ctrl_deps):
            if set(self.nodes) == {node.id for node in nodes if dependencies(node)}:
                raise AbnormalEnd("no node without dependencies")

    def take(self, item):
        if item not in self.free:
            raise AbnormalEnd("node %d is issued twice" % item)     # only after a receive that completes at once
        self.free.remove(item)
        self.running.add(item)
        return self.nodes[item]

    def finish(self, item):
        self.running.discard(item)
        for child in self.children[item]:
            self.parents[child].discard(item)
            if not self.parents[child]:
                self.free.add(child)

    @property
    def idle(self):
        return not self.free and not self.running


def integer(node, name, default=None):
    """Integer attribute of a node; any integer or bool representation will do (section 2)."""
    value = node.attrs.get(name, default)
    if value is None or isinstance(value, (float, str, bytes, list)):
        raise AbnormalEnd("node %d: attribute %s is missing or not an integer" % (node.id, name))
    return int(value)


# ---- timers of one NPU (section 4.2) ----------------------------------------------------------------------------

class NpuTimers:
    """All timers of one NPU for one tick run together, where the first of them was scheduled."""

    def __init__(self, queue):
        self.queue, self.due = queue, {}

    def after(self, delay, action):
        tick = self.queue.now + delay
        if tick not in self.due:
            self.due[tick] = []
            self.queue.at(tick, self._run)
        self.due[tick].append(action)

    def _run(self):
        for action in self.due[self.queue.now]:     # also meets the entries appended meanwhile
            action()
        del self.due[self.queue.now]


# ---- network (sections 4.3 and 8) -------------------------------------------------------------------------------

class Message:
    def __init__(self):
        self.on_sent = self.on_received = None
        self.arrived = False


class Network:
    """Message matching (4.3); the subclasses decide when a message arrives."""

    def __init__(self, queue, topology, npus_count, bandwidth, latency):
        self.queue, self.topology, self.npus_count, self.latency = queue, topology, npus_count, latency
        self.bytes_per_ns = [value * (1 << 30) / 1e9 for value in bandwidth]
        self.sends, self.receives, self.messages = defaultdict(int), defaultdict(int), {}

    def send(self, tag, src, dst, size, on_sent):
        if src == dst or size <= 0:
            raise AbnormalEnd("message to the own rank or of size 0")
        key = tag, src, dst, size
        number, self.sends[key] = self.sends[key], self.sends[key] + 1
        message = self.messages.setdefault((key, number), Message())
        message.on_sent = on_sent
        self.transfer(src, dst, size, lambda: self._arrive((key, number)))

    def recv(self, tag, src, dst, size, on_received):
        key = tag, src, dst, size
        number, self.receives[key] = self.receives[key], self.receives[key] + 1
        message = self.messages.setdefault((key, number), Message())
        if message.arrived:
            del self.messages[key, number]
            self.queue.after(0, on_received)
        else:
            message.on_received = on_received

    def _arrive(self, identity):
        message = self.messages[identity]
        if message.on_received:
            del self.messages[identity]
            message.on_sent()
            message.on_received()
        else:
            message.on_sent()
            message.arrived = True


class CongestionUnaware(Network):
    """Section 8.1."""

    def transfer(self, src, dst, size, on_arrival):
        for k, count in enumerate(self.npus_count):
            here, there = src % count, dst % count
            if here != there:
                break
            src, dst = src // count, dst // count
        delay = self._hops(k, here, there) * self.latency[k] + float(size) / self.bytes_per_ns[k]
        self.queue.after(int(delay), on_arrival)

    def _hops(self, k, here, there):
        if self.topology[k] == "Ring":
            clockwise = (there - here) % self.npus_count[k]
            return min(clockwise, self.npus_count[k] - clockwise)
        return 2 if self.topology[k] == "Switch" else 1


class Link:
    def __init__(self):
        self.busy, self.waiting = False, deque()


class CongestionAware(Network):
    """Section 8.2: store and forward over FIFO links, one dimension."""

    def __init__(self, queue, topology, npus_count, bandwidth, latency):
        super().__init__(queue, topology, npus_count, bandwidth, latency)
        if len(npus_count) != 1 or (topology[0] == "Ring" and npus_count[0] == 2):
            raise AbnormalEnd("congestion aware: one dimension only, and no ring of two")
        self.links = defaultdict(Link)

    def transfer(self, src, dst, size, on_arrival):
        self._forward(self._route(src, dst), size, on_arrival)

    def _route(self, src, dst):
        count = self.npus_count[0]
        if self.topology[0] == "Switch":
            return [src, count, dst]
        if self.topology[0] == "FullyConnected":
            return [src, dst]
        clockwise = (dst - src) % count
        step, hops = (1, clockwise) if clockwise <= count - clockwise else (-1, count - clockwise)
        return [(src + step * hop) % count for hop in range(hops + 1)]

    def _forward(self, route, size, on_arrival):
        link = self.links[route[0], route[1]]
        if link.busy:
            link.waiting.append((route, size, on_arrival))
        else:
            self._start(link, route, size, on_arrival)

    def _start(self, link, route, size, on_arrival):
        link.busy = True
        serialisation = float(size) / self.bytes_per_ns[0]
        if len(route) > 2:
            arrival = lambda: self._forward(route[1:], size, on_arrival)
        else:
            arrival = on_arrival
        self.queue.after(int(self.latency[0] + serialisation), arrival)
        self.queue.after(int(serialisation), lambda: self._link_free(link))

    def _link_free(self, link):
        link.busy = False
        if link.waiting:
            self._start(link, *link.waiting.popleft())


class PacketBackend:
    """The packet-level network under the system layer: packet-network.md section 6.1.

    One flow per message; receives are matched by (tag, src, dst) and by counting bytes.
    """

    def __init__(self, queue, config_path):
        self.packets = packet_network.PacketNetwork(packet_network.Settings(config_path), queue)
        self.arrived_bytes, self.posted = {}, {}        # posted: bytes still expected, latest callback

    def send(self, tag, src, dst, size, on_sent):
        def complete():
            on_sent()
            self._arrive((tag, src, dst), size)

        self.packets.send(src, dst, size, complete)

    def recv(self, tag, src, dst, size, on_received):
        key = tag, src, dst
        arrived = self.arrived_bytes.pop(key, 0)
        if arrived > size:
            self.arrived_bytes[key] = arrived - size
        if arrived >= size:
            on_received()
        else:
            expected = self.posted[key][0] if key in self.posted else 0
            self.posted[key] = expected + size - arrived, on_received

    def _arrive(self, key, size):
        expected, on_received = self.posted.pop(key, (0, None))
        if size < expected:
            self.posted[key] = expected - size, on_received
            return
        if size > expected:
            self.arrived_bytes[key] = self.arrived_bytes.get(key, 0) + size - expected
        if on_received:
            on_received()


# ---- remote memory (section 7) ----------------------------------------------------------------------------------

class RemoteMemory:
    def __init__(self, configuration):
        self.type = configuration["memory-type"]
        self.latency = int(configuration.get("remote-mem-latency", 0))
        self.bandwidth = int(configuration.get("remote-mem-bw", 0))
        self.npus_per_node = int(configuration.get("num-npus-per-node", 1))
        self.servers = defaultdict(Link)        # a FIFO server, like a link

    def access(self, npu, size, on_done):
        if self.type == "NO_MEMORY_EXPANSION":
            raise AbnormalEnd("remote memory access without memory expansion")
        if self.bandwidth == 0:
            raise AbnormalEnd("remote memory bandwidth 0")
        duration = self.latency + int(float(size) / self.bandwidth)
        if self.type == "PER_NPU_MEMORY_EXPANSION":
            npu.timers.after(duration, on_done)
            return
        server = self.servers[0 if self.type == "MEMORY_POOL" else npu.rank // self.npus_per_node]
        if server.busy:
            server.waiting.append((npu, duration, on_done))
        else:
            self._serve(server, npu, duration, on_done)

    def _serve(self, server, npu, duration, on_done):
        server.busy = True
        npu.timers.after(duration, on_done)
        npu.timers.after(duration, lambda: self._next(server))

    def _next(self, server):
        server.busy = False
        if server.waiting:
            self._serve(server, *server.waiting.popleft())


# ---- shared bus (section 5.9) -----------------------------------------------------------------------------------

class BusRequest:
    def __init__(self, size, processed, send_back, on_delivery):
        self.size, self.processed, self.send_back, self.on_delivery = size, processed, send_back, on_delivery


class BusPort:
    """One LogGP port.  `inner` is the (NPU port, MA port) pair of the inner bus, or None."""
    FAIR_RUN = 8

    def __init__(self, npu, parameters, gap_per_byte, inner=None):
        self.npu, self.inner, self.gap_per_byte = npu, inner, gap_per_byte
        self.latency, self.overhead, self.gap, self.reduction_delay = parameters
        self.sends, self.received, self.processing = deque(), deque(), deque()
        self.state = self.previous = "idle"
        self.last = self.run_length = 0
        self.processor_busy = False
        self.partner = None

    def request(self, request):
        if self.inner:
            self.inner[1].request(BusRequest(request.size, False, False, lambda: self._append_send(request)))
        else:
            self._append_send(request)

    def _append_send(self, request):
        self.sends.append(request)
        self._start_if_idle()

    def _start_if_idle(self):
        if self.state != "idle" or not self.sends:
            return
        if self.run_length > self.FAIR_RUN and self.partner.sends and self.partner.run_length <= self.FAIR_RUN:
            self.partner._start_if_idle()
        else:
            self._start_transfer()

    def _start_transfer(self):
        since_last = self.npu.now - self.last
        offset = self.overhead
        if self.previous == "sending" and not self.overhead + since_last > self.gap:
            offset = self.gap - since_last
        request, partner = self.sends.popleft(), self.partner
        partner.received.append(request)
        partner.previous, partner.state, partner.run_length = partner.state, "receiving", 0
        transfer = (request.size - 1) * self.gap_per_byte
        self.npu.timers.after(int(offset + transfer + self.latency + self.overhead), partner._receive_ends)
        self.state = "sending"
        self.npu.timers.after(int(offset + transfer), self._send_ends)

    def _send_ends(self):
        self.last, self.previous, self.state = self.npu.now, self.state, "idle"
        self.run_length += 1
        self._start_if_idle()

    def _receive_ends(self):
        self.last, self.previous = self.npu.now, self.state
        if len(self.received) == 1:
            self.state = "idle"
        request = self.received.popleft()
        if not request.processed:
            self._send_back_or_retire(request)
        else:
            request.processed = False
            if self.inner:
                self.inner[0].request(BusRequest(request.size, False, True, lambda: self._queue_processing(request)))
            else:
                self._queue_processing(request)
        self._start_if_idle()

    def _queue_processing(self, request):
        self.processing.append(request)
        self._start_processor()
        self._start_if_idle()

    def _start_processor(self):
        if self.processing and not self.processor_busy:
            self.processor_busy = True
            self.npu.timers.after(self.processing[0].size // 100 * self.reduction_delay + 50, self._processing_ends)

    def _processing_ends(self):
        self.processor_busy = False
        self._send_back_or_retire(self.processing.popleft())
        self._start_processor()
        self._start_if_idle()

    def _send_back_or_retire(self, request):
        if request.send_back:
            request.send_back = False
            if self.inner:
                self.inner[0].request(BusRequest(request.size, False, True, lambda: self._append_send(request)))
            else:
                self.sends.append(request)
        elif self.inner:
            self.inner[0].request(BusRequest(request.size, False, False, lambda: self._deliver(request)))
        else:
            request.on_delivery()

    def _deliver(self, request):
        request.on_delivery()
        self._start_if_idle()


def shared_bus(npu, configuration):
    """The (NPU port, MA port) pair of one NPU's bus; only the NPU port owns an inner bus."""
    parameters = [int(configuration.get(key, 0)) for key in ("L", "o", "g")]
    parameters.append(configuration.get("local-reduction-delay", 1))
    outer_gap = struct.unpack("f", struct.pack("f", configuration.get("G", 0)))[0]
    inner = joined(BusPort(npu, parameters, 0.0038), BusPort(npu, parameters, 0.0038))
    return joined(BusPort(npu, parameters, outer_gap, inner), BusPort(npu, parameters, outer_gap))


def joined(one, other):
    one.partner, other.partner = other, one
    return one, other


# ---- collective algorithms (sections 5.4 to 5.10) ---------------------------------------------------------------

class Algorithm:
    """One phase: start() is INIT, on_receive() RECV, on_timer() TIMER of section 5.4."""

    def __init__(self, npu, data, group_ring=False):
        self.npu, self.data_out, self.group_ring = npu, data, group_ring
        self.stream = None

    def send(self, dst, size):
        self.npu.send(self._tag(), dst, size, lambda: None)

    def post_recv(self, src, size):
        self.npu.recv(self._tag(), src, size, self.on_receive)

    def _tag(self):
        return COLLECTIVE_TAG_BASE + self.stream.id % COLLECTIVE_TAG_BASE

    def bundle(self, size, processed, from_npu=False, send_back=False):
        """Endpoint delay, then the reduction delay if processed, then TIMER (5.5, 5.9)."""
        npu = self.npu

        def endpoint_passed():
            if processed:
                npu.timers.after(npu.reduction_time(size), self.on_timer)
            else:
                self.on_timer()

        if self.group_ring:
            npu.timers.after(GROUP_RING_DELAY, endpoint_passed)
        elif npu.bus:
            npu.bus[0 if from_npu else 1].request(BusRequest(size, processed, send_back, endpoint_passed))
        else:
            npu.timers.after(npu.endpoint_delay, endpoint_passed)

    def done(self):
        self.npu.advance(self.stream)


def data_after(kind, data, count):
    """Size of the data after a phase (5.2)."""
    return {"ALL_GATHER": data * count, "REDUCE_SCATTER": data // count}.get(kind, data)


class RoundAlgorithm(Algorithm):
    """What ring, direct and halving-doubling have in common (5.7)."""

    def __init__(self, npu, kind, ranks, data, group_ring):
        super().__init__(npu, data_after(kind, data, len(ranks)), group_ring)
        self.kind, self.ranks, self.count, self.index = kind, ranks, len(ranks), ranks.index(npu.rank)
        self.parallelism, self.nonzero_per_round = 1, 0
        self.zero = self.nonzero = self.free = self.received = self.left = 0
        self.toggle, self.packets = False, deque()

    def insert(self):
        if self.zero == 0 and self.nonzero == 0:
            self.zero, self.nonzero, self.toggle = self.parallelism, self.nonzero_per_round, not self.toggle
        packet = self.next_packet()
        self.packets.append(packet)
        if self.zero > 0:
            self.zero -= 1
            self.bundle(packet[2], processed=False, from_npu=True)
        else:
            send_back = self.nonzero > self.parallelism
            self.nonzero -= 1
            processed = self.kind == "REDUCE_SCATTER" or (self.kind == "ALL_REDUCE" and self.toggle)
            self.bundle(packet[2], processed, send_back=send_back)

    def try_send(self):
        if self.packets and self.left and self.free:
            to, source, size = self.packets.popleft()
            self.send(self.ranks[to], size)
            self.post_recv(self.ranks[source], size)
            self.left -= 1
            self.free -= 1

    def start(self):
        for _ in range(self.parallelism):
            self.insert()

    def on_receive(self):
        self.received += 1
        self.insert()

    def on_timer(self):
        self.free += 1
        self.try_send()
        self.end_if_done()

    def end_if_done(self):
        if self.left == 0 and self.free == self.parallelism:
            self.done()


class RingOrDirect(RoundAlgorithm):
    """Section 5.7.  `window` is None for ring, 0 for direct without a window."""

    def __init__(self, npu, kind, ranks, data, group_ring, direction, window=None):
        super().__init__(npu, kind, ranks, data, group_ring)
        steps, self.direct, self.direction = self.count - 1, window is not None, direction
        self.size = data if kind == "ALL_GATHER" else data // self.count
        self.left = 2 * steps if kind == "ALL_REDUCE" else steps
        if kind == "ALL_TO_ALL" and not self.direct:
            self.left = self.count * steps // 2
        if self.direct:
            self.parallelism = min(window, steps) if window else steps
        self.nonzero_per_round = self.parallelism
        if group_ring or not self.direct:
            self.nonzero_per_round *= steps
        self.to, self.source = self._step(self.index, 1), self._step(self.index, -1)

    def _step(self, index, sign):
        return (index + sign * self.direction) % self.count

    def _step_past_self(self, index, sign):
        index = self._step(index, sign)
        return self._step(index, sign) if index == self.index else index

    def next_packet(self):
        packet = self.to, self.source, self.size
        if self.direct:
            self.to, self.source = self._step_past_self(self.to, 1), self._step_past_self(self.source, -1)
        return packet

    def on_timer(self):
        if not (self.direct and self.kind == "ALL_REDUCE" and self.left <= self.count - 1):
            super().on_timer()
            return
        self.free += 1
        if self.received < self.count - 1:
            return
        for _ in range(self.parallelism):
            self.try_send()
        self.end_if_done()


class HalvingDoubling(RoundAlgorithm):
    """Section 5.7, second part."""

    def __init__(self, npu, kind, ranks, data, group_ring):
        super().__init__(npu, kind, ranks, data, group_ring)
        if kind == "ALL_TO_ALL":
            raise AbnormalEnd("halving-doubling cannot run an all-to-all")
        levels, gather = math.log2(self.count), kind == "ALL_GATHER"
        self.left = int(2 * levels) if kind == "ALL_REDUCE" else int(levels)
        self.nonzero_per_round = int(levels - 1)
        self.size = data if gather else data // 2
        self.factor = 0.5 if gather else 2.0
        self.offset = self.count // 2 if gather else 1

    def next_packet(self):
        peer = self._peer()
        packet = peer, peer, self.size
        self._scale()
        if self.kind == "ALL_REDUCE" and self.offset == self.count:
            self.factor = 0.5
            self._scale()
        return packet

    def _scale(self):
        self.offset, self.size = int(self.offset * self.factor), int(self.size / self.factor)

    def _peer(self):
        if self.offset == 0:
            return self.index
        direction = CLOCKWISE if self.index // self.offset % 2 == 0 else ANTICLOCKWISE
        return (self.index + direction * self.offset) % self.count


def binary_tree(count, largest):
    """Parents and children by index in the tree MAX (largest) or MIN (5.8)."""
    parent, children = {}, {}

    def subtree(low, high):
        if low > high:
            return None
        middle = (low + high) // 2
        children[middle] = subtree(low, middle - 1), subtree(middle + 1, high)
        for child in children[middle]:
            parent[child] = middle
        return middle

    root, below = (count - 1, subtree(0, count - 2)) if largest else (0, subtree(1, count - 1))
    children[root], parent[below] = (below, None), root
    return root, parent, children


class DoubleBinaryTree(Algorithm):
    """Section 5.8: always an all-reduce of the whole data on one of the two trees."""

    def __init__(self, npu, ranks, data, largest):
        super().__init__(npu, data)
        if len(ranks) & (len(ranks) - 1) or npu.rank not in ranks:
            raise AbnormalEnd("double binary tree: the number of ranks must be a power of two")
        self.data, me = data, ranks.index(npu.rank)
        root, parent, children = binary_tree(len(ranks), largest)
        self.children = [ranks[child] for child in children[me] if child is not None]
        self.parent = None if me == root else ranks[parent[me]]
        self.receives = self.timers_seen = 0

    def start(self):
        if not self.children:
            self.bundle(self.data, False, from_npu=True)
        for child in self.children:
            self.post_recv(child, self.data)

    def on_receive(self):
        self.receives += 1
        leaf, first_of_two = not self.children, len(self.children) == 2 and self.receives == 1
        self.bundle(self.data, processed=not leaf, send_back=not leaf and not first_of_two)

    def on_timer(self):
        self.timers_seen += 1
        children_in = max(1, len(self.children))
        if self.parent is not None and self.timers_seen == children_in:
            self.send(self.parent, self.data)
            self.post_recv(self.parent, self.data)
        elif self.parent is None or self.timers_seen > children_in:
            for child in self.children:
                self.send(child, self.data)
            self.done()


class CustomCollective(Algorithm):
    """Section 5.10: the algorithm is itself a trace."""

    def __init__(self, npu, prefix, group):
        super().__init__(npu, 0)
        self.prefix, self.members = prefix, group.members if group else range(npu.system.npus)
        self.graph = None

    def start(self):
        position = sorted(self.members).index(self.npu.rank)
        self.graph = DependencyGraph(etlib.read_trace("%s.%d.et" % (self.prefix, position)))
        self._issue()

    def _issue(self):
        for item in list(self.graph.free):
            self._execute(self.graph.take(item))

    def _execute(self, node):
        finish = lambda: self._finish(node)
        if node.type == etlib.COMP:
            self.npu.timers.after(replay_time(node), finish)
        elif node.type in (etlib.COMM_SEND, etlib.COMM_RECV):
            sending = node.type == etlib.COMM_SEND
            peer = self.members[integer(node, "comm_dst" if sending else "comm_src")]
            tag = integer(node, "comm_tag") % COLLECTIVE_TAG_BASE
            (self.npu.send if sending else self.npu.recv)(tag, peer, integer(node, "comm_size"), finish)

    def _finish(self, node):
        self.graph.finish(node.id)
        self._issue()
        if self.graph.idle:
            self.done()


# ---- system layer of one NPU (section 5) ------------------------------------------------------------------------

class Stream:
    def __init__(self, identity, priority, phases, data_set):
        self.id, self.priority, self.phases, self.data_set = identity, priority, deque(phases), data_set
        self.queue = self.algorithm = None
        self.started = False


class DataSet:
    """One collective on one NPU: complete after `expected` streams."""

    def __init__(self, expected, on_complete):
        self.expected, self.on_complete, self.finished = expected, on_complete, 0

    def stream_done(self):
        self.finished += 1
        if self.finished == self.expected:
            self.on_complete()


class Group:
    def __init__(self, identity, members):
        self.members, self.plans = members, {}
        self.next_stream = identity * GROUP_STREAM_IDS


class Dimension:
    """One entry of a logical topology (5.1).  `position` is the index in the implementation list."""

    def __init__(self, position, ranks, implementation, group_ring=False):
        self.position, self.ranks, self.implementation, self.group_ring = position, ranks, implementation, group_ring
        self.phases_created = 0         # chooses between the two trees (5.8)


class QueueAllocator:
    """Queue and direction of a phase (5.2)."""

    def __init__(self, dimensions, queues):
        self.queues, self.half = queues, queues // 2
        self.next_general, self.next_first, self.next_second = [0] * dimensions, [0] * dimensions, [self.half] * dimensions

    def general(self, k):
        position = self.next_general[k]
        self.next_general[k] = (position + 1) % self.queues
        anticlockwise = self.queues > 1 and position >= self.half
        return k * self.queues + position, ANTICLOCKWISE if anticlockwise else CLOCKWISE

    def first_half(self, k):
        position = self.next_first[k]
        self.next_first[k] = 0 if position + 1 >= self.half else position + 1
        return k * self.queues + position, CLOCKWISE

    def second_half(self, k):
        position = self.next_second[k]
        self.next_second[k] = self.half if position + 1 >= self.queues else position + 1
        return k * self.queues + position, ANTICLOCKWISE


class SystemLayer:
    """Collectives of one NPU: topologies, chunks, phases, queues."""

    def __init__(self, system, rank):
        self.system, self.rank, configuration = system, rank, system.configuration
        self.timers = NpuTimers(system.queue)
        self.endpoint_delay = 10
        if "endpoint-delay" in configuration:
            self.endpoint_delay = int(configuration["endpoint-delay"] * system.injection_scale)
        self.local_mem_bw = configuration.get("local-mem-bw", 0) * 1e9
        self.bus = shared_bus(self, configuration) if configuration.get("model-shared-bus") else None
        self.groups = {key: Group(key, members) for key, members in system.groups.items()}
        self.allocator = QueueAllocator(len(system.npus_count), system.queues_per_dim)
        self.streams_at_once = -(-configuration.get("active-chunks-per-dimension", 1) // system.queues_per_dim)
        self.queues, self.running = defaultdict(list), defaultdict(int)
        self.streams_created = self.priority_counter = 0
        self.topologies = {kind: self._logical_topology(kind) for kind in CONFIGURATION_KEYS}

    @property
    def now(self):
        return self.system.queue.now

    def send(self, tag, dst, size, on_sent):
        network = self.system.network
        start = lambda: network.send(tag, self.rank, dst, size, on_sent)
        if self.system.rendezvous:
            network.recv(tag + RENDEZVOUS_TAG_OFFSET, dst, self.rank, RENDEZVOUS_SIZE, start)
        else:
            start()

    def recv(self, tag, src, size, on_received):
        network = self.system.network
        post = lambda: network.recv(tag, src, self.rank, size, on_received)
        if self.system.rendezvous:
            network.send(tag + RENDEZVOUS_TAG_OFFSET, self.rank, src, RENDEZVOUS_SIZE, post)
        else:
            post()

    def reduction_time(self, size):
        if not self.local_mem_bw:
            raise AbnormalEnd("local-mem-bw 0: the reduction time is undefined")
        return 3 * int(float(size) / self.local_mem_bw * 1e9)

    # -- topology and phases

    def _logical_topology(self, kind):
        """Section 5.1; None without an implementation list."""
        implementations = self.system.configuration.get(CONFIGURATION_KEYS[kind] + "-implementation")
        if implementations is None:
            return None
        if len(implementations) > len(self.system.npus_count):
            raise AbnormalEnd("more implementations than network dimensions")
        dimensions, offset = [], 1
        for k, implementation in enumerate(implementations):
            if implementation.startswith("one"):
                dimensions.append(Dimension(k, list(range(self.system.npus)), implementation))
                break
            count = self.system.npus_count[k]
            first = self.rank - self.rank // offset % count * offset
            if implementation == "doubleBinaryTree" and k == len(implementations) - 1:
                first = self.rank % offset
            dimensions.append(Dimension(k, [first + i * offset for i in range(count)], implementation))
            offset *= count
        return dimensions

    def _plan(self, node, kind, group):
        """A custom path prefix or a list of Dimension (5.10, 6.4)."""
        if group and kind in group.plans:
            return group.plans[kind]
        key = CONFIGURATION_KEYS[kind]
        custom = self.system.configuration.get(key + "-implementation-custom")
        if node.id in self.system.custom_by_node:
            plan = self.system.custom_by_node[node.id]
        elif custom:
            plan = custom[0]
        elif self.topologies[kind] is None:
            raise AbnormalEnd("no implementation of " + kind)
        elif group and len(group.members) != self.system.npus:
            names = self.system.configuration[key + "-implementation"]
            plan = [Dimension(0, group.members, names[0] if len(names) == 1 else "ring", group_ring=True)]
        else:
            plan = self.topologies[kind]
        if group:
            group.plans[kind] = plan
        return plan

    def _algorithm(self, kind, dimension, data, direction):
        name = dimension.implementation
        if name.startswith("one"):
            name = name[3].lower() + name[4:]
        if name == "doubleBinaryTree":
            if dimension.group_ring:
                raise AbnormalEnd("double binary tree on a group")
            dimension.phases_created += 1
            return DoubleBinaryTree(self, dimension.ranks, data, largest=dimension.phases_created % 2 == 1)
        arguments = self, kind, dimension.ranks, data, dimension.group_ring
        if name == "halvingDoubling":
            return HalvingDoubling(*arguments)
        if name == "ring":
            return RingOrDirect(*arguments, direction)
        if name.startswith("direct"):
            return RingOrDirect(*arguments, direction, window=int(name[6:] or 0))
        raise AbnormalEnd("unknown implementation " + name)

    def _phases(self, kind, dimensions):
        """(queue, algorithm) pairs are built from these (kind, dimension, allocator) steps (5.2)."""
        allocator = self.allocator
        if kind == "ALL_GATHER":
            return [(kind, dimension, allocator.general) for dimension in reversed(dimensions)]
        if kind != "ALL_REDUCE" or self.system.configuration.get("collective-optimization", "baseline") == "baseline":
            return [(kind, dimension, allocator.general) for dimension in dimensions]
        return ([("REDUCE_SCATTER", dimension, allocator.first_half) for dimension in dimensions[:-1]]
                + [("ALL_REDUCE", dimension, allocator.first_half) for dimension in dimensions[-1:]]
                + [("ALL_GATHER", dimension, allocator.second_half) for dimension in reversed(dimensions[:-1])])

    def _build_stream_phases(self, kind, dimensions, data):
        built = []
        for phase_kind, dimension, allocate in self._phases(kind, dimensions):
            queue, direction = allocate(dimension.position)
            algorithm = self._algorithm(phase_kind, dimension, data, direction)
            built.append((queue, algorithm))
            data = algorithm.data_out
        return built

    # -- collectives and streams

    def collective(self, node, kind, size, on_complete):
        """Chunking, section 5.2."""
        group = self._group_of(node)
        splits = self.system.configuration.get("preferred-dataset-splits", 0)
        if splits < 1:
            raise AbnormalEnd("preferred-dataset-splits is 0")
        chunk = size // splits
        if kind != "ALL_GATHER" and self.system.npus > chunk:
            chunk = self.system.npus
            size = splits * chunk
        if chunk == 0 and size > 0:
            raise AbnormalEnd("all-gather smaller than preferred-dataset-splits")
        plan, priority = self._plan(node, kind, group), self._next_priority(node)
        streams = -(-size // chunk) if chunk else 0
        data_set = DataSet(streams, on_complete)
        if isinstance(plan, str):
            phases_of_streams = [[(0, CustomCollective(self, plan, group))]]
        else:
            involved = node.attrs.get("involved_dim") if not group else None
            active = [dimension for dimension in plan if len(dimension.ranks) > 1
                      and (involved is None or involved[dimension.position])]
            phases_of_streams = [self._build_stream_phases(kind, active, chunk) for _ in range(streams)] if active else []
        for phases in phases_of_streams:
            stream = Stream(self._next_stream_id(group), priority, phases, data_set)
            self._enter_next_queue(stream)

    def _group_of(self, node):
        name = node.attrs.get("pg_name", "")
        if name in ("", "0"):
            return None
        if int(name) not in self.groups:
            raise AbnormalEnd("communicator group %s not found" % name)
        return self.groups[int(name)]

    def _next_priority(self, node):
        policy = self.system.configuration.get("scheduling-policy")
        if policy == "EXPLICIT":
            return integer(node, "comm_priority", 0)
        priority = self.priority_counter
        self.priority_counter += {"LIFO": 1, "FIFO": -1}[policy]
        return priority

    def _next_stream_id(self, group):
        identity = self.streams_created
        self.streams_created += 1
        if group:
            identity = group.next_stream
            group.next_stream += 1
        return identity

    def _enter_next_queue(self, stream, left_queue=None):
        stream.queue, stream.algorithm = stream.phases.popleft()
        stream.algorithm.stream, stream.started = stream, False
        waiting, place = self.queues[stream.queue], 0
        while place < len(waiting) and (waiting[place].started or waiting[place].priority >= stream.priority):
            place += 1
        waiting.insert(place, stream)
        if left_queue is not None:
            self._slot_released(left_queue)
        self._start_what_fits(stream.queue)

    def _slot_released(self, queue):
        self.running[queue] -= 1
        self._start_what_fits(queue)

    def _start_what_fits(self, queue):
        waiting, place = self.queues[queue], self.running[queue]
        while place < len(waiting) and self.running[queue] < self.streams_at_once:
            waiting[place].started = True
            waiting[place].algorithm.start()
            self.running[queue] += 1
            place += 1

    def advance(self, stream):
        """Phase end, section 5.3."""
        if not stream.phases:
            stream.data_set.stream_done()
        queue = stream.queue
        self.queues[queue].remove(stream)
        if stream.phases:
            self._enter_next_queue(stream, left_queue=queue)
        else:
            self._slot_released(queue)


# ---- workload layer of one NPU (section 6) ----------------------------------------------------------------------

def replay_time(node):
    return node.duration_micros * 1000 or 1


class Npu(SystemLayer):
    def __init__(self, system, rank, nodes):
        super().__init__(system, rank)
        self.graph = DependencyGraph(nodes)
        self.occupied = set()
        self.gpu_total = 0
        self.finish_tick = None

    def slot(self, node):
        """Section 6.2; None for a receive, which never occupies."""
        if node.attrs.get("is_cpu_op", False):
            return "cpu"
        return {etlib.COMP: "gpu compute", etlib.COMM_RECV: None}.get(node.type, "gpu communication")

    def issue(self):
        """Section 6.1."""
        for item in sorted(self.graph.free):
            node = self.graph.nodes[item]
            if self.slot(node) not in self.occupied:
                self.graph.take(item)
                self.occupied |= {self.slot(node)} - {None}
                self.execute(node)
        if self.finish_tick is None and self.graph.idle and not self.occupied:
            self.finish_tick = self.now
            self.system.report_finished(self.rank)

    def release(self, node):
        self.occupied.discard(self.slot(node))
        self.graph.finish(node.id)

    def complete(self, node):
        if self.finish_tick is None:
            self.release(node)
            self.issue()

    def execute(self, node):
        """Section 6.3."""
        complete = lambda: self.complete(node)
        if self.system.configuration.get("replay-only") or (node.type == etlib.COMP and not self._uses_roofline(node)):
            self._timed(node, replay_time(node))
        elif node.type == etlib.COMP and integer(node, "tensor_size"):
            self._timed(node, self._roofline_time(node))
        elif node.type in (etlib.INVALID, etlib.COMP):
            self.release(node)
        elif node.type in (etlib.MEM_LOAD, etlib.MEM_STORE):
            self.system.memory.access(self, integer(node, "tensor_size"), complete)
        elif node.type == etlib.COMM_SEND:
            self._check_own_rank(node, "comm_src")
            self.send(self._tag(node), integer(node, "comm_dst"), integer(node, "comm_size"), complete)
        elif node.type == etlib.COMM_RECV:
            self._check_own_rank(node, "comm_dst")
            self.recv(self._tag(node), integer(node, "comm_src"), integer(node, "comm_size"), complete)
        elif node.type == etlib.COMM_COLL:
            self._execute_collective(node, complete)
        else:
            raise AbnormalEnd("METADATA node issued")

    def _execute_collective(self, node, complete):
        kind = COLLECTIVE_NAMES.get(integer(node, "comm_type"))
        if self.slot(node) == "cpu":
            raise AbnormalEnd("collective on the CPU")
        if kind == "BROADCAST":
            self.timers.after(replay_time(node), complete)
        elif kind in CONFIGURATION_KEYS:
            self.collective(node, kind, integer(node, "comm_size"), complete)
        else:
            raise AbnormalEnd("unsupported collective")

    def _timed(self, node, duration):
        if self.slot(node) != "cpu":
            self.gpu_total += duration
        self.timers.after(duration, lambda: self.complete(node))

    def _uses_roofline(self, node):
        return self.system.configuration.get("roofline-enabled") and self.slot(node) != "cpu"

    def _roofline_time(self, node):
        operations = float(integer(node, "num_ops"))
        intensity = operations / float(integer(node, "tensor_size"))
        performance = min(self.local_mem_bw * intensity, self.system.configuration.get("peak-perf", 0) * 1e12)
        if not performance:
            raise AbnormalEnd("roofline with performance 0")
        return int(operations / performance * 1e9)

    def _tag(self, node):
        return integer(node, "comm_tag") % COLLECTIVE_TAG_BASE

    def _check_own_rank(self, node, name):
        if integer(node, name, self.rank) != self.rank:
            raise AbnormalEnd("node %d: %s is another rank" % (node.id, name))


# ---- the whole run (sections 1, 3 and 9) ------------------------------------------------------------------------

def read_yaml(path):
    """The YAML that the inputs need: `key: value`, `key: [a, b]` and block lists."""
    values, key = {}, None
    with open(path) as file:
        for line in file:
            text = line.split("#")[0].strip()
            if text.startswith("- "):
                values[key] = (values[key] if isinstance(values[key], list) else []) + [text[2:].strip()]
            elif ":" in text:
                key, _, value = (part.strip() for part in text.partition(":"))
                flow_list = value.startswith("[")
                values[key] = [item.strip() for item in value[1:-1].split(",")] if flow_list else value
    return values


def read_json(path):
    with open(path) as file:
        return json.load(file)


class Simulation:
    """`options` maps the option names of section 1 to values."""

    def __init__(self, backend, options):
        self.queue, self.finished_order = EventQueue(), []
        self.queues_per_dim = int(options.get("num-queues-per-dim", 1))
        self.injection_scale = float(options.get("injection-scale", 1))
        self.rendezvous = str(options.get("rendezvous-protocol", "false")).lower() in ("true", "1")
        self._build_network(backend, options)
        self.npus = math.prod(self.npus_count)
        self.memory = RemoteMemory(read_json(options["remote-memory-configuration"]))
        self.configuration = read_json(options["system-configuration"])
        groups = options.get("comm-group-configuration", "empty")
        self.groups = {} if "empty" in groups else {int(key): value for key, value in read_json(groups).items()}
        self.custom_by_node = {}
        if "per-node-custom-implementation" in self.configuration:
            by_node = read_yaml(self.configuration["per-node-custom-implementation"])
            self.custom_by_node = {int(key): prefix for key, prefix in by_node.items()}
        self._check_configuration()
        prefix = options["workload-configuration"]
        self.ranks = [Npu(self, rank, etlib.read_trace("%s.%d.et" % (prefix, rank))) for rank in range(self.npus)]

    def _check_configuration(self):
        if self.queues_per_dim < 1:
            raise AbnormalEnd("num-queues-per-dim 0")
        if self.configuration.get("scheduling-policy") not in ("LIFO", "FIFO", "EXPLICIT"):
            raise AbnormalEnd("scheduling-policy missing or unknown")
        if self.configuration.get("collective-optimization", "baseline") not in ("baseline", "localBWAware"):
            raise AbnormalEnd("unknown collective-optimization")

    def _build_network(self, backend, options):
        if backend == "packet":
            logical = read_json(options["logical-topology-configuration"])
            self.npus_count = [int(count) for count in logical.get("logical-dims", ["1"])]
            self.network = PacketBackend(self.queue, options["network-configuration"])
            return
        network = read_yaml(options["network-configuration"])
        self.npus_count = [int(count) for count in network["npus_count"]]
        bandwidth, latency = ([float(value) for value in network[key]] for key in ("bandwidth", "latency"))
        topology, counts = network["topology"], self.npus_count
        if (len({len(topology), len(counts), len(bandwidth), len(latency)}) != 1 or min(counts) < 2
                or min(bandwidth) <= 0 or min(latency) < 0 or set(topology) - {"Ring", "Switch", "FullyConnected"}):
            raise AbnormalEnd("bad network configuration")
        model = {"unaware": CongestionUnaware, "aware": CongestionAware}[backend]
        self.network = model(self.queue, topology, counts, bandwidth, latency)

    def run(self):
        for npu in self.ranks:
            npu.issue()
        packet = isinstance(self.network, PacketBackend)
        if self.queue.next_time() == 0 and not packet:
            raise AbnormalEnd("event at tick 0")        # 4.1
        self.queue.run(PACKET_LIMIT_NS if packet else None)
        return self.result()

    def report_finished(self, rank):
        """The packet-level program ends with the last rank (packet-network.md section 2)."""
        self.finished_order.append(rank)
        if isinstance(self.network, PacketBackend) and len(self.finished_order) == self.npus:
            self.queue.stop()

    def result(self):
        ticks = [npu.finish_tick for npu in self.ranks]
        exposed = [None if npu.finish_tick is None else (npu.finish_tick - npu.gpu_total) % 2**64 for npu in self.ranks]
        result = {"npus": self.npus, "cycles": ticks, "exposed_communication": exposed,
                  "completion_order": self.finished_order,
                  "stuck_ranks": [npu.rank for npu in self.ranks if npu.finish_tick is None]}
        if isinstance(self.network, PacketBackend):
            result["fct"] = self.network.packets.fct_lines
        return result


def simulate(backend, options):
    try:
        return Simulation(backend, options).run()
    except (AbnormalEnd, packet_network.NotCovered) as end:
        return {"abnormal_end": str(end)}


# ---- table of cases (layout of the golden data astra-sim) ----------------------------------------------------------------

UNDEFINED_CASES = ("X.sys.nolmb", "M.roofline.ops0", "X.queues.overflow", "X.coll.ag_size0")


def case_options(case):
    options = {"workload-configuration": "workloads/%s/w" % case["workload"], "system-configuration": case["system"],
               "network-configuration": case["network"], "remote-memory-configuration": case["memory"]}
    if case.get("group"):
        options["comm-group-configuration"] = case["group"]
    return {**options, **case.get("args", {})}


def by_rank(figures, npus):
    """Undo the collapsing of the table: a number, a list or an object becomes a list with None for unfinished."""
    if isinstance(figures, dict):
        return [figures.get(str(rank)) for rank in range(npus)]
    return figures if isinstance(figures, list) else [figures] * npus


def expected_result(entry, npus):
    cycles = by_rank(entry.get("cycles"), npus)
    finished = [rank for rank in range(npus) if cycles[rank] is not None]
    expected = {"npus": npus, "cycles": cycles, "exposed_communication": by_rank(entry.get("exposed"), npus),
                "stuck_ranks": [rank for rank in range(npus) if rank not in finished]}
    if "order" in entry:
        expected["completion_order"] = entry["order"] if isinstance(entry["order"], list) else finished
    return expected


def check(folder, only):
    """Run every case of FOLDER/cases.jsonl; abnormal ends only have to be recognised as such."""
    count = defaultdict(int)
    os.chdir(folder)
    with open("cases.jsonl") as table:
        cases = [json.loads(line) for line in table]
    for case in cases:
        for backend, entry in case["expect"].items():
            if not case["id"].startswith(only):
                continue
            if case["id"].startswith(UNDEFINED_CASES):
                count["undefined, not compared"] += 1
                continue
            try:
                result = simulate(backend, case_options(case))
            except (OSError, ValueError, KeyError) as problem:
                result = {"abnormal_end": repr(problem)}
            if entry["rc"] != 0:
                verdict = "abnormal end recognised" if "abnormal_end" in result else "abnormal end not recognised"
            else:
                verdict = "equal" if result == {**result, **expected_result(entry, case["npus"])} else "different"
            count[verdict] += 1
            if verdict in ("different", "abnormal end not recognised"):
                print(verdict, case["id"], backend, json.dumps(result)[:200], flush=True)
    print(json.dumps(count))
    return 1 if count["different"] else 0


def check_packet(folder, only):
    """Run the collective cases of the golden data packet-network: cycles of every rank and all lines of fct.txt."""
    count = defaultdict(int)
    with open(os.path.join(folder, "manifest.json")) as file:
        names = [case["name"] for case in json.load(file)["cases"] if case["kind"] == "collective"]
    for name in names:
        if not name.startswith(only):
            continue
        os.chdir(os.path.join(folder, name))
        first_trace = next(file for file in os.listdir("workload") if file.endswith(".0.et"))
        options = {"workload-configuration": "workload/" + first_trace[:-len(".0.et")], "network-configuration": "config.txt",
                   "system-configuration": "system.json", "remote-memory-configuration": "memory.json",
                   "logical-topology-configuration": "logical.json"}
        result, summary = simulate("packet", options), read_json("expected/summary.json")
        same = (result["cycles"] == summary["rank_finish_cycles"]
                and packet_network.sha256_of_lines(result["fct"]) == summary["fct_sha256"])
        count["equal" if same else "different"] += 1
        if not same:
            print("different", name, flush=True)
    print(json.dumps(count))
    return 1 if count["different"] else 0


# ---- random cases -----------------------------------------------------------------------------------------------

class RandomCase:
    """A small valid case.  Most cases complete; some block, which the expected result then shows as stuck ranks."""
    BANDWIDTHS = (12.5, 25.0, 33.3, 50.0, 100.0, 300.0, 450.5)
    LATENCIES = (0.0, 1.0, 30.0, 123.4, 500.0, 936.25, 2000.0)
    KINDS = tuple(CONFIGURATION_KEYS)

    def __init__(self, seed, largest=3 << 20):
        self.random, self.largest = random.Random(seed), largest
        self.network, self.npus_count = self._network()
        self.npus = math.prod(self.npus_count)
        self.groups = self._groups()
        self.custom = not self.groups and self._chance(0.1)
        self.system = self._system()
        self.memory = self._memory()
        self.options = self._options()
        self.ordered = self._chance(0.8)        # communication in the same order on every rank
        self.traces = [[] for _ in range(self.npus)]
        self.last_communication = [None] * self.npus
        for _ in range(self.random.randint(2, 12)):
            self._add_operation()

    def _chance(self, probability):
        return self.random.random() < probability

    def _pick(self, *choices):
        return self.random.choice(choices)

    # -- configuration

    def _network(self):
        while True:
            counts = [self._pick(2, 3, 4, 4, 5, 6, 8, 8, 16) for _ in range(self._pick(1, 1, 1, 2, 2, 3))]
            if math.prod(counts) <= 32:
                break
        topology = [self._pick("Ring", "Switch", "FullyConnected") for _ in counts]
        lists = {"topology": topology, "npus_count": counts, "bandwidth": [self._pick(*self.BANDWIDTHS) for _ in counts],
                 "latency": [self._pick(*self.LATENCIES) for _ in counts]}
        return "".join("%s: [ %s ]\n" % (key, ", ".join(map(str, value))) for key, value in lists.items()), counts

    def _groups(self):
        """Disjoint groups of equal size (contiguous, strided or shuffled), or none."""
        sizes = [size for size in range(2, self.npus + 1) if self.npus % size == 0]
        if not self._chance(0.35):
            return {}
        size, ranks = self._pick(*sizes), list(range(self.npus))
        arrangement = self._pick("contiguous", "strided", "shuffled")
        if arrangement == "shuffled":
            self.random.shuffle(ranks)
        if arrangement == "strided":
            ranks = [rank for first in range(self.npus // size) for rank in range(first, self.npus, self.npus // size)]
        return {str(1 + i): ranks[i * size:(i + 1) * size] for i in range(self.npus // size)}

    def _implementations(self, kind):
        """One entry per dimension; restricted to what works for the sizes (5.7, 5.8, 6.4)."""
        if self._chance(0.1):
            return [self._pick("oneRing", "oneDirect", "oneDirect%d" % self.random.randint(1, 4))]
        names = []
        group_size = len(next(iter(self.groups.values()))) if self.groups else None
        for count in self.npus_count:
            choices = ["ring", "ring", "direct", "direct%d" % self.random.randint(1, count)]
            sizes = [count, group_size] if group_size and len(self.npus_count) == 1 else [count]
            if all(size & (size - 1) == 0 for size in sizes) and kind != "ALL_TO_ALL":
                choices += ["halvingDoubling"]
                choices += ["doubleBinaryTree"] if kind == "ALL_REDUCE" and len(sizes) == 1 else []
            names.append(self._pick(*choices))
        return names

    def _system(self):
        pick = self._pick
        system = {"scheduling-policy": pick("LIFO", "FIFO", "EXPLICIT"), "endpoint-delay": pick(1, 7, 10, 10, 55, 200),
                  "active-chunks-per-dimension": pick(1, 1, 2, 3, 4), "preferred-dataset-splits": pick(1, 2, 3, 4, 8),
                  "collective-optimization": pick("baseline", "localBWAware"), "local-mem-bw": pick(7, 50, 333.3, 1600),
                  "peak-perf": pick(0.5, 10, 900), "roofline-enabled": pick(0, 1)}
        for kind in self.KINDS:
            system[CONFIGURATION_KEYS[kind] + "-implementation"] = self._implementations(kind)
        if self._chance(0.1):
            system.update({"model-shared-bus": 1, "L": pick(0, 5), "o": pick(1, 3), "g": pick(0, 4), "G": pick(0.001, 0.0038)})
            system["local-reduction-delay"] = pick(1, 2)
        if self._chance(0.05):
            system["replay-only"] = 1
        if self.custom:
            system["preferred-dataset-splits"] = 1
            system["all-reduce-implementation-custom"] = ["custom"]
        return system

    def _memory(self):
        kind = self._pick("NO_MEMORY_EXPANSION", "NO_MEMORY_EXPANSION", "PER_NPU_MEMORY_EXPANSION",
                          "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL")
        if kind == "NO_MEMORY_EXPANSION":
            return {"memory-type": kind}
        return {"memory-type": kind, "remote-mem-latency": self._pick(1, 50, 500), "remote-mem-bw": self._pick(1, 7, 100),
                "num-npus-per-node": self.npus_count[0], "num-nodes": self.npus // self.npus_count[0]}

    def _options(self):
        options = {"workload-configuration": "workload", "system-configuration": "system.json",
                   "network-configuration": "network.yml", "remote-memory-configuration": "memory.json"}
        if self.groups:
            options["comm-group-configuration"] = "groups.json"
        if self._chance(0.3):
            options["num-queues-per-dim"] = self.random.randint(2, 4)
        if self._chance(0.1):
            options["rendezvous-protocol"] = "true"
        if self._chance(0.1):
            options["injection-scale"] = self._pick(1.5, 2)
        return options

    # -- workload

    def _add_node(self, rank, node_type, duration=0, in_order=True, **attributes):
        """Append a node that depends on up to two earlier ones and, if in order, on the last communication."""
        trace = self.traces[rank]
        node = etlib.Node(trace[-1].id + self.random.randint(1, 3) if trace else self.random.randint(0, 5), node_type)
        earlier = [other.id for other in trace]
        for dependencies in (node.data_deps, node.ctrl_deps):
            if earlier and self._chance(0.4):
                dependencies.append(self.random.choice(earlier))
        if in_order and self.ordered and self.last_communication[rank] is not None:
            node.data_deps.append(self.last_communication[rank])
        if in_order:
            self.last_communication[rank] = node.id
        node.duration_micros, node.attrs = duration, {"is_cpu_op": False, **attributes}
        trace.append(node)

    def _add_operation(self):
        operations = [self._compute, self._compute, self._collective, self._collective, self._exchange, self._broadcast]
        if self.groups:
            operations += [self._group_collective, self._group_collective]
        if self.memory["memory-type"] != "NO_MEMORY_EXPANSION":
            operations.append(self._memory_access)
        self.random.choice(operations)()

    def _compute(self):
        same, duration = self._chance(0.5), self.random.randint(0, 40)
        size, operations = self.random.randint(1, 1 << 22), self.random.randint(1, 1 << 30)
        for rank in range(self.npus):
            self._add_node(rank, etlib.COMP, duration if same else self.random.randint(0, 40), in_order=False,
                           num_ops=operations, tensor_size=("uint64", size))

    def _random_collective(self):
        kind = self.random.choice(self.KINDS)
        size = self._pick(self.random.randint(64, 5000), self.random.randint(5000, 1 << 20), 1 << 20, 3 << 20)
        if kind == "ALL_TO_ALL" and self.npus > 8:
            size = min(size, 1 << 16)
        attributes = {"comm_type": etlib.COLLECTIVE_TYPES[kind], "comm_size": min(size, self.largest)}
        if self.system["scheduling-policy"] == "EXPLICIT":
            attributes["comm_priority"] = ("int32", self.random.randint(0, 5))
        return attributes

    def _collective(self):
        attributes = self._random_collective()
        if len(self.npus_count) > 1 and self._chance(0.2):
            flags = [self._chance(0.6) for _ in self.npus_count]
            attributes["involved_dim"] = [True] + flags[1:] + [True] * (4 - len(flags))
        for rank in range(self.npus):
            self._add_node(rank, etlib.COMM_COLL, **attributes)

    def _group_collective(self):
        attributes = self._random_collective()
        for name, members in self.groups.items():
            for rank in sorted(members):
                self._add_node(rank, etlib.COMM_COLL, pg_name=name, **attributes)

    def _exchange(self):
        """Everybody sends to the rank `distance` further on, or one pair only."""
        distance, tag = self.random.randint(1, self.npus - 1), self.random.randint(0, 5)
        size = ("uint64", min(self.random.randint(4096, 1 << 20), self.largest))
        senders = list(range(self.npus)) if self._chance(0.6) else [self.random.randrange(self.npus)]
        for src in senders:
            peer = (src + distance) % self.npus
            self._add_node(src, etlib.COMM_SEND, comm_src=src, comm_dst=peer, comm_size=size, comm_tag=("int32", tag))
        for src in senders:
            peer = (src + distance) % self.npus
            self._add_node(peer, etlib.COMM_RECV, in_order=False, comm_src=src, comm_dst=peer, comm_size=size,
                           comm_tag=("int32", tag))

    def _broadcast(self):
        attributes = {"comm_type": etlib.COLLECTIVE_TYPES["BROADCAST"], "comm_size": 1000}
        duration = self.random.randint(0, 9)
        for rank in range(self.npus):
            self._add_node(rank, etlib.COMM_COLL, duration, **attributes)

    def _memory_access(self):
        node_type, size = self._pick(etlib.MEM_LOAD, etlib.MEM_STORE), self.random.randint(1, 1 << 18)
        for rank in range(self.npus):
            self._add_node(rank, node_type, tensor_size=("uint64", size))

    def custom_programs(self):
        """A custom all-reduce: rounds in which position p sends to p + distance (5.10)."""
        rounds = [(self.random.randint(1, self.npus - 1), self.random.randint(1000, 1 << 18), self._chance(0.5))
                  for _ in range(self.random.randint(1, 6))]
        return [self._custom_program(position, rounds) for position in range(self.npus)]

    def _custom_program(self, position, rounds):
        nodes, before = [], []
        for step, (distance, size, reduces) in enumerate(rounds):
            send, receive, reduce = (etlib.Node(3 * step + i) for i in range(3))
            send.type, receive.type, reduce.type = etlib.COMM_SEND, etlib.COMM_RECV, etlib.COMP
            send.attrs = {"comm_src": position, "comm_dst": (position + distance) % self.npus}
            receive.attrs = {"comm_src": (position - distance) % self.npus, "comm_dst": position}
            for node in (send, receive):
                node.attrs.update({"is_cpu_op": False, "comm_size": size, "comm_tag": ("int32", step)})
            send.data_deps, reduce.data_deps, reduce.duration_micros = before[-2:], [receive.id], step % 3
            nodes += [send, receive] + ([reduce] if reduces else [])
            before.append(reduce.id if reduces else receive.id)
        return nodes


def write_random_case(seed, folder, packet):
    """Inputs, case.json (the options, paths relative to the folder) and expected.json (per back end)."""
    case = RandomCase(seed, 1 << 16) if packet else RandomCase(seed)
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    has_aware = len(case.npus_count) == 1 and not (case.npus == 2 and "Ring" in case.network)
    backends = ["unaware"] + ["aware"] * has_aware
    texts = {"system.json": case.system, "memory.json": case.memory}
    if packet:
        backends = ["packet"]
        packet_network.RandomCase(seed, 0, case.npus).write(".")
        texts["logical.json"] = {"logical-dims": [str(count) for count in case.npus_count]}
        case.options.update({"network-configuration": "config.txt", "logical-topology-configuration": "logical.json"})
    else:
        texts["network.yml"] = case.network
    if case.groups:
        texts["groups.json"] = case.groups
    texts["case.json"] = {"seed": seed, "npus": case.npus, "options": case.options}
    for rank, trace in enumerate(case.traces):
        etlib.write_trace("workload.%d.et" % rank, trace)
    for position, program in enumerate(case.custom_programs() if case.custom else ()):
        etlib.write_trace("custom.%d.et" % position, program)
    write_files(texts)
    write_files({"expected.json": {backend: simulate(backend, case.options) for backend in backends}})


def write_files(texts):
    for name, content in texts.items():
        with open(name, "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, indent=1) + "\n")


# ---- command line -----------------------------------------------------------------------------------------------

REQUIRED_OPTIONS = ("workload-configuration", "system-configuration", "network-configuration",
                    "remote-memory-configuration")
OPTIONS = REQUIRED_OPTIONS + ("logical-topology-configuration", "comm-group-configuration", "num-queues-per-dim",
                              "injection-scale", "rendezvous-protocol", "comm-scale", "compute-scale",
                              "logging-configuration", "logging-folder")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("unaware", "aware", "packet"), default="unaware")
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--out", metavar="FOLDER", help="for --random; default astra-case-SEED")
    parser.add_argument("--check", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="PREFIX", help="for --check: case ids that start so")
    for name in OPTIONS:
        parser.add_argument("--" + name)
    arguments = parser.parse_args()
    if arguments.check:
        packet_table = os.path.exists(os.path.join(arguments.check, "manifest.json"))
        return (check_packet if packet_table else check)(os.path.abspath(arguments.check), arguments.only)
    if arguments.random is not None:
        folder = arguments.out or "astra-case-%d" % arguments.random
        write_random_case(arguments.random, folder, packet=arguments.backend == "packet")
        return 0
    given = {name: getattr(arguments, name.replace("-", "_")) for name in OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    missing = [name for name in REQUIRED_OPTIONS if name not in options]
    if missing:
        parser.error("missing: " + ", ".join(missing))
    result = simulate(arguments.backend, options)
    print(json.dumps(result))
    return 3 if "abnormal_end" in result else 0


if __name__ == "__main__":
    sys.exit(main())
