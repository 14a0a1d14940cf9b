#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executable specification of the packet-level network (RDMA over lossless Ethernet).

Section numbers refer to docs/spec/packet-network.md.  The aim is to be short and to follow the text, not to be fast.

    packet_network.py CONFIG [--format json|text]     run the flows of FLOW_FILE
    packet_network.py --random SEED [--out FOLDER]    write a random small case and its expected result
    packet_network.py --check FOLDER                  run the flow cases of FOLDER/manifest.json (golden data)

Paths inside CONFIG are relative to its folder.  Covered: sections 1, 3 to 8.4, 8.6, 10 (links with an error
rate of their own), 11.1 and 11.2.  Anything else that a configuration asks for is refused (exit status 3).
"""
import argparse
import functools
import hashlib
import json
import os
import random
import sys
from collections import defaultdict, deque

from events import EventQueue, Timer

DATA, ACK, NACK, PFC = "data", "ack", "nack", "pfc"
TRAFFIC_CLASS = 3                   # of every flow and of its ACKs (section 5)
CLASSES = 8
DESTINATION_PORT = 100
FIRST_SOURCE_PORT = 10000
PFC_SIZE = 31                       # 6.2
RESERVE, RESUME_OFFSET = 4096, 3072  # 7.1
NACK_INTERVAL_NS = 500_000          # 6.3
LOSS_STREAM = (1 << 63) + 50        # 1.2
HOST_HASH_SEED = 0x8BADF00D         # section 5
MASK32 = 0xFFFFFFFF
DCQCN, HPCC, TIMELY, DCTCP, PINT = 1, 3, 7, 8, 10


class NotCovered(Exception):
    """The configuration needs something that this model does not describe."""


# ---- numbers (sections 1.1, 1.2, 5) -----------------------------------------------------------------------------

def transmission_time(size, rate):
    """Nanoseconds for `size` bytes at `rate` bit/s: nearest, an exact half goes down (1.1)."""
    return (16 * size * 10**9 + rate - 1) // (2 * rate)


def murmur3(words, seed):
    """32-bit Murmur3 of a key made of three 32-bit words (section 5)."""
    def rotate(value, bits):
        return (value << bits | value >> (32 - bits)) & MASK32

    state = seed
    for word in words:
        mixed = rotate(word * 0xcc9e2d51 & MASK32, 15) * 0x1b873593 & MASK32
        state = (rotate(state ^ mixed, 13) * 5 + 0xe6546b64) & MASK32
    state ^= 4 * len(words)
    for shift, factor in ((16, 0x85ebca6b), (13, 0xc2b2ae35), (16, 1)):
        state = (state ^ state >> shift) * factor & MASK32
    return state


class RandomStream:
    """MRG32k3a (1.2): six ones advanced by stream * 2^127 + 2^76 steps."""
    MODULI = 4294967087, 4294944443
    STEPS = ((0, 1, 0), (0, 0, 1), (-810728, 1403580, 0)), ((0, 1, 0), (0, 0, 1), (-1370589, 0, 527612))

    def __init__(self, stream):
        self.states = [self._jump(part, 76, self._jumps(part, stream, [1, 1, 1])) for part in (0, 1)]

    @classmethod
    @functools.lru_cache(maxsize=None)
    def _power(cls, part, exponent):
        """The step matrix of one half of the generator, raised to 2^exponent."""
        modulus = cls.MODULI[part]
        if exponent == 0:
            return tuple(tuple(value % modulus for value in row) for row in cls.STEPS[part])
        half = cls._power(part, exponent - 1)
        return tuple(tuple(sum(half[i][k] * half[k][j] for k in range(3)) % modulus for j in range(3)) for i in range(3))

    @classmethod
    def _jump(cls, part, exponent, state):
        return [sum(a * b for a, b in zip(row, state)) % cls.MODULI[part] for row in cls._power(part, exponent)]

    @classmethod
    def _jumps(cls, part, stream, state):
        exponent = 127
        while stream:
            if stream & 1:
                state = cls._jump(part, exponent, state)
            stream, exponent = stream >> 1, exponent + 1
        return state

    def uniform(self):
        for part in (0, 1):
            self.states[part] = self._jump(part, 0, self.states[part])
        x, y = self.states[0][2], self.states[1][2]
        return (x - y if x > y else x - y + self.MODULI[0]) * 2.328306549295727688e-10


# ---- inputs (sections 3 and 4) ----------------------------------------------------------------------------------

DEFAULTS = {
    "ENABLE_QCN": 1, "CLAMP_TARGET_RATE": 0, "PACKET_PAYLOAD_SIZE": 1000, "L2_CHUNK_SIZE": 0, "L2_ACK_INTERVAL": 0,
    "L2_BACK_TO_ZERO": 0, "CC_MODE": 1, "ALPHA_RESUME_INTERVAL": 55, "RATE_DECREASE_INTERVAL": 4, "RP_TIMER": 0,
    "EWMA_GAIN": 0, "FAST_RECOVERY_TIMES": 5, "MIN_RATE": "100Mb/s", "DCTCP_RATE_AI": "1000Mb/s", "RATE_AI": None,
    "RATE_HAI": None, "ERROR_RATE_PER_LINK": 0, "HAS_WIN": 1, "GLOBAL_T": 1, "VAR_WIN": 0, "FAST_REACT": 1,
    "U_TARGET": 0.95, "MI_THRESH": 5, "INT_MULTI": 1, "MULTI_RATE": 1, "SAMPLE_FEEDBACK": 0, "RATE_BOUND": 1,
    "NIC_TOTAL_PAUSE_TIME": 0, "ACK_HIGH_PRIO": 0, "BUFFER_SIZE": 16, "TOPOLOGY_FILE": None, "FLOW_FILE": None}
REAL_KEYS = ("EWMA_GAIN", "U_TARGET", "ERROR_RATE_PER_LINK")
RATE_KEYS = ("MIN_RATE", "DCTCP_RATE_AI", "RATE_AI", "RATE_HAI")
FILE_KEYS = ("TOPOLOGY_FILE", "FLOW_FILE")
MAP_KEYS = ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP")


def parse_quantity(text, units):
    for unit, factor in units:
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    raise NotCovered("no unit in " + text)


def parse_rate(text):
    return int(parse_quantity(text, (("Gbps", 10**9), ("Gb/s", 10**9), ("Mbps", 10**6), ("Mb/s", 10**6),
                                     ("Kbps", 10**3), ("kbps", 10**3), ("bps", 1))))


def parse_delay(text):
    return round(parse_quantity(text, (("ms", 10**6), ("us", 10**3), ("ns", 1))))


class Settings:
    """config.txt (section 3); every key becomes a lower-case attribute."""

    def __init__(self, path):
        values = dict(DEFAULTS)
        with open(path) as file:
            words = deque(file.read().split())
        while words:
            key = words.popleft()
            if key in MAP_KEYS:
                values[key] = {int(words.popleft()): float(words.popleft()) for _ in range(int(words.popleft()))}
            elif key == "LINK_DOWN":
                values[key] = [int(words.popleft()) for _ in range(3)]
            elif key in values:
                values[key] = words.popleft()
        for key, value in values.items():
            if key in RATE_KEYS:
                value = parse_rate(value)
            elif key in FILE_KEYS:
                value = os.path.join(os.path.dirname(path), value)
            elif key in DEFAULTS:
                value = float(value) if key in REAL_KEYS else int(float(value))
            setattr(self, key.lower(), value)
        self.link_down = values.get("LINK_DOWN", [0, 0, 0])
        self.int_size = {HPCC: 42, TIMELY: 8, PINT: 2}.get(self.cc_mode, 0)     # 6.2
        self.ack_size = 22 + max(26, 12 + self.int_size)
        self._refuse_what_is_not_covered()

    def _refuse_what_is_not_covered(self):
        for wrong, reason in ((self.cc_mode == PINT, "HPCC-PINT uses the C library's rand()"),
                              (self.link_down[1:] != [0, 0], "link failure"),
                              (self.nic_total_pause_time, "NIC pauses"), (self.sample_feedback, "SAMPLE_FEEDBACK"),
                              (self.error_rate_per_link, "ERROR_RATE_PER_LINK"),
                              (self.l2_chunk_size <= 0, "L2_CHUNK_SIZE must be positive"),
                              (self.cc_mode == HPCC and not self.has_win, "HPCC without window")):
            if wrong:
                raise NotCovered(reason)


def read_topology(path):
    """(number of nodes, set of switches, [(a, b, rate, delay, error)]), section 4.1."""
    with open(path) as file:
        words = deque(file.read().split())
    nodes, switch_count, link_count = (int(words.popleft()) for _ in range(3))
    switches = {int(words.popleft()) for _ in range(switch_count)}
    links = []
    for _ in range(link_count):
        a, b, rate, delay, error = (words.popleft() for _ in range(5))
        links.append((int(a), int(b), parse_rate(rate), parse_delay(delay), float(error)))
    return nodes, switches, links


def read_flows(path):
    """[(src, dst, bytes, start in ns)], section 4.2."""
    with open(path) as file:
        words = file.read().split()
    rows = [words[1 + 6 * i:7 + 6 * i] for i in range(int(words[0]))]
    return [(int(row[0]), int(row[1]), int(row[4]), round(float(row[5]) * 1e9)) for row in rows]


# ---- packets, flows, ports --------------------------------------------------------------------------------------

class Packet:
    __slots__ = ("kind", "size", "source", "destination", "source_port", "destination_port", "sequence", "payload",
                 "ecn", "cnp", "hop_records", "ingress", "paused_class", "pauses")

    def __init__(self, kind, size):
        self.kind, self.size, self.hop_records = kind, size, []
        self.ecn = False        # marked by a switch; an ACK may be marked too, without effect
        self.cnp = False        # of an ACK: the packet that it acknowledges was marked

    def key(self):
        return self.source, self.destination, self.source_port | self.destination_port << 16

    @classmethod
    def reply(cls, kind, size, packet, sequence):
        """ACK or NACK for a data packet: addresses and ports swapped, ECN and INT echoed (6.3)."""
        reply = cls(kind, size)
        reply.source, reply.destination = packet.destination, packet.source
        reply.source_port, reply.destination_port = packet.destination_port, packet.source_port
        reply.sequence, reply.cnp, reply.hop_records = sequence, packet.ecn, packet.hop_records
        return reply


class Flow:
    """One message on its way (6.1)."""

    def __init__(self, src, dst, size, source_port, on_complete):
        self.src, self.dst, self.size, self.source_port, self.on_complete = src, dst, size, source_port, on_complete
        self.acknowledged = self.next_byte = self.last_size = 0
        self.complete = False

    def begin(self, nic, now, window, base_rtt):
        self.nic, self.start, self.window, self.base_rtt = nic, now, window, base_rtt
        self.line_rate = self.rate = nic.rate
        self.next_available = now

    def window_bound(self, variable):
        if not self.window:
            return False
        window = max(1, self.window * self.rate // self.line_rate) if variable else self.window
        return self.next_byte - self.acknowledged >= window


class Port:
    """What NIC and switch ports have in common: the transmitter and the pause flags."""

    def __init__(self, network, node, rate, delay, error, loss):
        self.network, self.queue, self.node, self.rate, self.delay = network, network.queue, node, rate, delay
        self.error, self.loss = error, loss
        self.number = len(node.ports) + 1
        self.busy, self.paused, self.peer = False, [False] * CLASSES, None
        node.ports.append(self)

    def transmit(self, packet):
        """End of transmission first, then arrival at the peer (6.5 step 4)."""
        self.busy = True
        duration = transmission_time(packet.size, self.rate)
        self.queue.after(duration, self._transmission_ends)
        self.queue.after(duration + self.delay, self.peer.arrive, packet)

    def _transmission_ends(self):
        self.busy = False
        self.try_transmit()

    def arrive(self, packet):
        if self.loss and self.loss.uniform() < self.error:      # section 10
            return
        if packet.kind != PFC:
            self.node.receive(self, packet)
            return
        self.network.record_pfc(self, packet)
        self.paused[packet.paused_class] = packet.pauses
        if not packet.pauses:
            self.try_transmit()


# ---- hosts (section 6) ------------------------------------------------------------------------------------------

class NicPort(Port):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.acks, self.flows, self.last_served, self.wake_up = deque(), [], 0, None

    def try_transmit(self):
        """Section 6.5."""
        if self.busy:
            return
        settings = self.network.settings
        if self.acks and not self.paused[0 if settings.ack_high_prio else TRAFFIC_CLASS]:
            self.transmit(self.acks.popleft())
            return
        served = self._choose_flow()
        if served is not None:
            self.last_served = served
            self._send_next_packet(self.flows[served])
        elif self.flows:
            earliest = min(flow.next_available for flow in self.flows)
            if not (self.wake_up and self.wake_up.pending) and earliest > self.queue.now:
                self._wake_up_after(earliest - self.queue.now)

    def _wake_up_after(self, delay):
        self.wake_up = Timer(self.queue, delay, self.try_transmit)

    def wake_up_no_later_than(self, time):
        """A flow may now send earlier than the pending wake-up (8.2)."""
        if self.wake_up and self.wake_up.pending and time < self.wake_up.time:
            self.wake_up.cancel()
            self._wake_up_after(max(0, time - self.queue.now))

    def _choose_flow(self):
        """Index of the first eligible flow after the last one served; finished flows are dropped on the way."""
        count, chosen, finished = len(self.flows), None, []
        for step in range(1, count + 1):
            index = (step + self.last_served) % count
            flow = self.flows[index]
            if self._may_send(flow):
                if flow.next_available <= self.queue.now:
                    chosen = index
                    break
            elif flow.acknowledged >= flow.size:
                finished.append(index)
        if not finished:
            return chosen
        served = None if chosen is None else self.flows[chosen]
        first = min(finished)
        self.flows[first:] = [flow for flow in self.flows[first:] if flow.acknowledged < flow.size]
        return None if served is None else self.flows.index(served)

    def _may_send(self, flow):
        return (not self.paused[TRAFFIC_CLASS] and flow.next_byte < flow.size
                and not flow.window_bound(self.network.settings.var_win))

    def _send_next_packet(self, flow):
        settings = self.network.settings
        payload = min(settings.packet_payload_size, flow.size - flow.next_byte)
        packet = Packet(DATA, payload + 36 + settings.int_size)
        packet.source, packet.destination = self.network.address(flow.src), self.network.address(flow.dst)
        packet.source_port, packet.destination_port = flow.source_port, DESTINATION_PORT
        packet.sequence, packet.payload = flow.next_byte, payload
        flow.next_byte += payload
        self.transmit(packet)
        flow.last_size = packet.size
        pace = flow.rate if settings.rate_bound else flow.line_rate
        flow.next_available = self.queue.now + transmission_time(packet.size, pace)

    def send_ack(self, packet):
        self.acks.append(packet)
        self.try_transmit()


class Reception:
    """Receiver state of one flow (6.3)."""

    def __init__(self):
        self.expected = self.last_nacked = self.nack_timer = 0


class Host:
    is_switch = False

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.ports, self.routes = [], defaultdict(list)
        self.sending, self.receiving = {}, defaultdict(Reception)

    def make_port(self, *link):
        return NicPort(self.network, self, *link)

    def nic_towards(self, key):
        """Section 5: a host with several NIC ports chooses by hash."""
        candidates = self.routes[key[1]]
        return candidates[murmur3(key, HOST_HASH_SEED) % len(candidates)]

    def receive(self, port, packet):
        if packet.kind == DATA:
            self._receive_data(packet)
        else:
            self._receive_ack(packet)

    def _receive_data(self, packet):
        """Section 6.3."""
        settings, state = self.network.settings, self.receiving[packet.source, packet.source_port]
        if packet.sequence < state.expected:
            return
        if packet.sequence > state.expected:
            if self.network.queue.now < state.nack_timer and state.last_nacked == state.expected:
                return
            state.nack_timer, state.last_nacked = self.network.queue.now + NACK_INTERVAL_NS, state.expected
            if settings.l2_back_to_zero:
                state.expected -= state.expected % settings.l2_chunk_size
            kind = NACK
        else:
            state.expected += packet.payload
            if state.expected < settings.l2_ack_interval and state.expected % settings.l2_chunk_size:
                return
            kind = ACK
        reply = Packet.reply(kind, settings.ack_size, packet, state.expected)
        self.nic_towards(reply.key()).send_ack(reply)

    def _receive_ack(self, packet):
        """Section 6.4."""
        flow, settings = self.sending.get((packet.source, packet.destination_port)), self.network.settings
        if flow is None:
            return
        sequence = packet.sequence
        if settings.l2_back_to_zero:
            sequence -= sequence % settings.l2_chunk_size
        flow.acknowledged = max(flow.acknowledged, sequence)
        if flow.acknowledged >= flow.size:
            self.network.flow_complete(flow)
        if packet.kind == NACK:
            flow.next_byte = flow.acknowledged
        flow.control.on_ack(packet)
        flow.nic.try_transmit()


# ---- switches (section 7) ---------------------------------------------------------------------------------------

class SwitchPort(Port):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.queues = [deque() for _ in range(CLASSES)]
        self.queued_bytes = self.last_class = self.bytes_sent = 0
        self.ingress, self.headroom_used, self.egress = [0] * CLASSES, [0] * CLASSES, [0] * CLASSES
        self.pause_sent = [False] * CLASSES

    def configure(self, nic_rate):
        """Headroom and threshold shift (7.1), ECN thresholds (section 3)."""
        self.headroom = self.rate * self.delay // 8 // 10**9 * 3
        self.shift, rate = 3, self.rate
        while rate > nic_rate and self.shift > 0:
            self.shift, rate = self.shift - 1, rate // 2
        settings = self.network.settings
        self.kmin = int(settings.kmin_map.get(self.rate, 0)) * 1000
        self.kmax = int(settings.kmax_map.get(self.rate, 0)) * 1000
        self.pmax = settings.pmax_map.get(self.rate, 0)

    def used(self, q):
        return max(0, self.ingress[q] - RESERVE)

    def threshold(self):
        return (self.node.available - self.node.shared & MASK32) >> self.shift

    def enqueue(self, q, packet):
        self.queues[q].append(packet)
        self.queued_bytes += packet.size
        self.try_transmit()

    def _next_class(self):
        if self.queues[0]:
            return 0
        for step in range(1, CLASSES + 1):
            q = (step + self.last_class) % CLASSES
            if self.queues[q] and not self.paused[q]:
                return q
        return None

    def try_transmit(self):
        q = None if self.busy else self._next_class()
        if q is None:
            return
        packet = self.queues[q].popleft()
        self.queued_bytes -= packet.size
        if q:
            self.last_class = q
            packet.ingress.release(q, packet.size)
            self.egress[q] -= packet.size
            self._mark(q, packet)
            packet.ingress.resume_if_possible(q)
        if packet.kind == DATA and self.network.settings.cc_mode == HPCC:
            packet.hop_records.append(self._hop_record())
        self.bytes_sent += packet.size
        self.transmit(packet)

    def _hop_record(self):
        """Section 8.2: time, bytes sent, queue length (both in their units), line rate."""
        multiplier = self.network.settings.int_multi
        return (self.queue.now % 2**24, self.bytes_sent // (128 * multiplier) % 2**20,
                self.queued_bytes // (80 * multiplier) % 2**17, self.rate)

    def _mark(self, q, packet):
        """Section 7.3."""
        occupancy = self.egress[q]
        if not self.network.settings.enable_qcn or occupancy <= self.kmin:
            return
        if occupancy > self.kmax:
            packet.ecn = True
            return
        probability = self.pmax * float(occupancy - self.kmin) / (self.kmax - self.kmin)
        if RandomStream(self.network.next_stream()).uniform() < probability:
            packet.ecn = True

    # -- accounting of what came in on this port (7.1) and PFC (7.2)

    def admits(self, q, size):
        return size + self.headroom_used[q] <= self.headroom or size + self.used(q) <= self.threshold()

    def account(self, q, size):
        total = self.ingress[q] + size
        if total <= RESERVE:
            self.ingress[q] = total
        elif total - RESERVE > self.threshold():
            self.headroom_used[q] += size
        else:
            self.ingress[q] = total
            self.node.shared += min(size, total - RESERVE)

    def release(self, q, size):
        from_headroom = min(self.headroom_used[q], size)
        from_shared = min(size - from_headroom, self.used(q))
        self.headroom_used[q] -= from_headroom
        self.ingress[q] -= size - from_headroom
        self.node.shared -= from_shared

    def pause_if_needed(self, q):
        if not self.pause_sent[q] and (self.headroom_used[q] > 0 or self.used(q) >= self.threshold()):
            self._send_pfc(q, pauses=True)

    def resume_if_possible(self, q):
        if (self.pause_sent[q] and self.headroom_used[q] == 0
                and (self.used(q) == 0 or self.used(q) + RESUME_OFFSET <= self.threshold())):
            self._send_pfc(q, pauses=False)

    def _send_pfc(self, q, pauses):
        self.network.next_stream()          # a PFC frame uses up one random stream (1.2)
        frame = Packet(PFC, PFC_SIZE)
        frame.paused_class, frame.pauses = q, pauses
        self.enqueue(0, frame)
        self.pause_sent[q] = pauses


class Switch:
    is_switch = True

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.ports, self.routes, self.shared = [], defaultdict(list), 0

    def make_port(self, *link):
        return SwitchPort(self.network, self, *link)

    def configure(self, nic_rate):
        for port in self.ports:
            port.configure(nic_rate)
        reserved = sum(port.headroom for port in self.ports) + RESERVE * len(self.ports)
        self.available = self.network.settings.buffer_size * 2**20 - reserved

    def receive(self, port, packet):
        q, candidates = TRAFFIC_CLASS, self.routes[packet.destination]
        out = candidates[murmur3(packet.key(), self.number) % len(candidates)]
        if not port.admits(q, packet.size):
            self.network.dropped += 1
            return
        packet.ingress = port
        port.account(q, packet.size)
        out.egress[q] += packet.size
        port.pause_if_needed(q)
        out.enqueue(q, packet)


# ---- congestion control (section 8) -----------------------------------------------------------------------------

class FixedRate:
    """Section 8.6."""

    def __init__(self, flow, settings, queue):
        self.flow, self.settings, self.queue = flow, settings, queue

    def on_ack(self, packet):
        pass

    def stop(self):
        pass


class Dcqcn(FixedRate):
    """Section 8.1."""

    def __init__(self, flow, settings, queue):
        super().__init__(flow, settings, queue)
        self.target, self.alpha, self.stage, self.first = flow.line_rate, 1.0, 0, True
        self.mark_for_alpha = self.mark_for_decrease = False
        self.timers = {}

    def _arm(self, name, microseconds, action, extra=0):
        if name in self.timers:
            self.timers[name].cancel()
        self.timers[name] = Timer(self.queue, microseconds * 1000 + extra, action)

    def on_ack(self, packet):
        if not packet.cnp or self.flow.complete:
            return
        self.mark_for_alpha = self.mark_for_decrease = True
        if self.first:
            self.first, self.alpha, self.mark_for_alpha, self.target = False, 1.0, False, self.flow.rate
            self._arm("alpha", self.settings.alpha_resume_interval, self._update_alpha)
            self._arm("decrease", self.settings.rate_decrease_interval, self._decrease, extra=1)

    def _update_alpha(self):
        gain = self.settings.ewma_gain
        self.alpha = (1 - gain) * self.alpha + (gain if self.mark_for_alpha else 0.0)
        self.mark_for_alpha = False
        self._arm("alpha", self.settings.alpha_resume_interval, self._update_alpha)

    def _decrease(self):
        self._arm("decrease", self.settings.rate_decrease_interval, self._decrease)
        if not self.mark_for_decrease:
            return
        flow = self.flow
        if self.settings.clamp_target_rate or self.stage != 0:
            self.target = flow.rate
        flow.rate = max(self.settings.min_rate, int(flow.rate * (1 - self.alpha / 2)))
        self.stage, self.mark_for_decrease = 0, False
        self._arm("increase", self.settings.rp_timer, self._increase)

    def _increase(self):
        self._arm("increase", self.settings.rp_timer, self._increase)
        if self.stage >= self.settings.fast_recovery_times:
            hyper = self.stage > self.settings.fast_recovery_times
            step = self.settings.rate_hai if hyper else self.settings.rate_ai
            self.target = min(self.flow.line_rate, self.target + step)
        self.flow.rate = int(self.flow.rate / 2) + int(self.target / 2)
        self.stage += 1

    def stop(self):
        for timer in self.timers.values():
            timer.cancel()


class RateState:
    """The part of HPCC's state that exists once per flow or once per hop."""

    def __init__(self, rate):
        self.utilisation, self.rate, self.stage = 1.0, rate, 0


class Hpcc(FixedRate):
    """Section 8.2."""

    def __init__(self, flow, settings, queue):
        super().__init__(flow, settings, queue)
        self.last_update, self.records = 0, []
        self.states = [RateState(flow.line_rate) for _ in range(5 if settings.multi_rate else 1)]

    def on_ack(self, packet):
        full = packet.sequence > self.last_update
        if not full and not self.settings.fast_react:
            return
        if self.last_update == 0:
            self.last_update, self.records = self.flow.next_byte, list(packet.hop_records)
            return
        utilisations = [self._utilisation(i, record) for i, record in enumerate(packet.hop_records)]
        self.records[:len(packet.hop_records)] = packet.hop_records
        if not self.settings.multi_rate:
            utilisations = [max([(0.0, 0)] + utilisations, key=lambda pair: pair[0])]
        updates = [self._update(state, *pair) for state, pair in zip(self.states, utilisations)]
        self._set_rate(min([self.flow.line_rate] + [rate for rate, _ in updates]))
        if full:
            for state, (rate, stage) in zip(self.states, updates):
                state.rate, state.stage = rate, stage
            self.last_update = max(self.last_update, self.flow.next_byte)

    def _utilisation(self, i, record):
        """(u_i, tau) of one hop."""
        before = self.records[i] if i < len(self.records) else (0, 0, 0, 0)
        unit, flow = self.settings.int_multi, self.flow
        tau, sent = (record[0] - before[0]) % 2**24, (record[1] - before[1]) % 2**20 * 128 * unit
        if tau:
            transmit_rate = sent * 8 / (tau * 1e-9)
        else:
            transmit_rate = float("inf") if sent else 0.0
        queue_bytes = float(min(record[2], before[2]) * 80 * unit)
        return transmit_rate / record[3] + queue_bytes * flow.line_rate / record[3] / flow.window, tau

    def _update(self, state, utilisation, tau):
        """New (rate, stage); the smoothed utilisation is stored at once."""
        settings, base_rtt = self.settings, self.flow.base_rtt
        tau = min(tau, base_rtt)
        state.utilisation = (state.utilisation * (base_rtt - tau) + utilisation * tau) / float(base_rtt)
        ratio = state.utilisation / settings.u_target
        if ratio >= 1 or state.stage >= settings.mi_thresh:
            rate, stage = int(state.rate / ratio) + settings.rate_ai, 0
        else:
            rate, stage = state.rate + settings.rate_ai, state.stage + 1
        return min(max(rate, settings.min_rate), self.flow.line_rate), stage

    def _set_rate(self, rate):
        flow = self.flow
        flow.next_available += transmission_time(flow.last_size, rate) - transmission_time(flow.last_size, flow.rate)
        flow.nic.wake_up_no_later_than(flow.next_available)
        flow.rate = rate


class Timely(FixedRate):
    """Section 8.3, with the absolute time in the place of the round-trip time."""
    ALPHA, BETA, LOW, HIGH, MIN_RTT = 0.875, 0.8, 50_000, 500_000, 20_000

    def __init__(self, flow, settings, queue):
        super().__init__(flow, settings, queue)
        self.last_update = self.last_rtt = self.increases = 0
        self.difference = 0.0

    def on_ack(self, packet):
        if packet.sequence <= self.last_update:
            return
        rtt = self.queue.now
        if self.last_update != 0:
            self.difference = (1 - self.ALPHA) * self.difference + self.ALPHA * (rtt - self.last_rtt)
            self._change_rate(rtt, self.difference / self.MIN_RTT)
        if self.flow.next_byte > self.last_update:
            self.last_update, self.last_rtt = self.flow.next_byte, rtt

    def _change_rate(self, rtt, gradient):
        flow, settings = self.flow, self.settings
        if rtt < self.LOW or (rtt <= self.HIGH and gradient <= 0):
            step = settings.rate_ai if self.increases < 5 else settings.rate_hai
            flow.rate = min(flow.line_rate, flow.rate + step)
            self.increases += 1
            return
        if rtt > self.HIGH:
            factor = 1 - self.BETA * (1 - float(self.HIGH) / rtt)
        else:
            factor = max(0, 1 - self.BETA * gradient)
        flow.rate = max(settings.min_rate, int(flow.rate * factor))
        self.increases = 0


class Dctcp(FixedRate):
    """Section 8.4."""

    def __init__(self, flow, settings, queue):
        super().__init__(flow, settings, queue)
        self.alpha, self.marks, self.last_update, self.batch = 1.0, 0, 0, 0
        self.reduced, self.high_sequence = False, 0

    def on_ack(self, packet):
        flow, settings, sequence = self.flow, self.settings, packet.sequence
        self.marks += packet.cnp
        new_batch = sequence > self.last_update
        if new_batch:
            self._close_batch(sequence)
        if self.reduced and sequence > self.high_sequence:
            self.reduced = False
        if packet.cnp and not self.reduced:
            flow.rate = max(settings.min_rate, int(flow.rate * (1 - self.alpha / 2)))
            self.reduced, self.high_sequence = True, flow.next_byte
        if new_batch and not self.reduced:
            flow.rate = min(flow.line_rate, flow.rate + settings.dctcp_rate_ai)

    def _close_batch(self, sequence):
        flow, payload, gain = self.flow, self.settings.packet_payload_size, self.settings.ewma_gain
        if self.last_update == 0:
            self.batch = flow.next_byte // payload + 1
        else:
            fraction = min(1.0, float(self.marks) / self.batch)
            self.alpha = (1 - gain) * self.alpha + gain * fraction
            self.marks, self.batch = 0, (flow.next_byte - sequence) // payload + 1
        self.last_update = flow.next_byte


CONTROLS = {DCQCN: Dcqcn, HPCC: Hpcc, TIMELY: Timely, DCTCP: Dctcp}


# ---- the network ------------------------------------------------------------------------------------------------

class Path:
    """Base quantities of one host pair (section 5)."""

    def __init__(self, delay=0, transmission=0, bandwidth=1 << 64):
        self.delay, self.transmission, self.bandwidth = delay, transmission, bandwidth

    def extended(self, port, payload):
        return Path(self.delay + port.delay, self.transmission + payload * 8 * 10**9 // port.rate,
                    min(self.bandwidth, port.rate))

    @property
    def rtt(self):
        return 2 * self.delay + self.transmission

    @property
    def bdp(self):
        return self.rtt * self.bandwidth // 10**9 // 8


class PacketNetwork:
    def __init__(self, settings, queue):
        self.settings, self.queue = settings, queue
        self.fct_lines, self.pfc_lines, self.dropped = [], [], 0
        self.paths, self.source_ports, self.unfinished = {}, defaultdict(lambda: FIRST_SOURCE_PORT), set()
        self._build(*read_topology(settings.topology_file))
        for host in self.hosts:
            self._route_to(host)
        for switch in self.switches:
            switch.configure(self.hosts[0].ports[0].rate)
        self.max_rtt = max(path.rtt for path in self.paths.values())
        self.max_bdp = max(path.bdp for path in self.paths.values())

    def _build(self, count, switches, links):
        self.nodes = [(Switch if number in switches else Host)(self, number) for number in range(count)]
        self.hosts = [node for node in self.nodes if not node.is_switch]
        self.switches = [node for node in self.nodes if node.is_switch]
        self.neighbours = [{} for _ in self.nodes]
        self.streams_used = 9 * count + 2 + 2 * sum(error > 0 for *_, error in links)      # 1.2
        for a, b, rate, delay, error in links:
            loss = RandomStream(LOSS_STREAM) if error > 0 else None
            one, other = (self.nodes[end].make_port(rate, delay, error, loss) for end in (a, b))
            one.peer, other.peer = other, one
            self.neighbours[a][b], self.neighbours[b][a] = one, other

    def _search_order(self, number):
        """Hosts ascending, then switches descending (section 5)."""
        return sorted(self.neighbours[number], key=lambda x: (1, -x) if self.nodes[x].is_switch else (0, x))

    def _route_to(self, host):
        """Breadth-first search from one destination host; only switches forward."""
        payload, distance, paths = self.settings.packet_payload_size, {host.number: 0}, {host.number: Path()}
        waiting = deque([host.number])
        while waiting:
            here = waiting.popleft()
            for there in self._search_order(here):
                if there not in distance:
                    distance[there] = distance[here] + 1
                    paths[there] = paths[here].extended(self.neighbours[here][there], payload)
                    if self.nodes[there].is_switch:
                        waiting.append(there)
                if distance[there] == distance[here] + 1:
                    self.nodes[there].routes[self.address(host.number)].append(self.neighbours[there][here])
        for number, path in paths.items():
            if number != host.number and not self.nodes[number].is_switch:
                self.paths[number, host.number] = path

    @staticmethod
    def address(number):
        return 0x0b000001 + number // 256 * 0x10000 + number % 256 * 0x100

    def next_stream(self):
        self.streams_used += 1
        return self.streams_used - 1

    # -- flows (6.1)

    def send(self, src, dst, size, on_complete=lambda: None):
        """A flow starts in the same nanosecond, after two scheduling hops."""
        flow = Flow(src, dst, size, self.source_ports[src, dst], on_complete)
        self.source_ports[src, dst] += 1
        self.unfinished.add(flow)
        self.queue.after(0, lambda: self.queue.after(0, self._start, flow))

    def _start(self, flow):
        settings, host, path = self.settings, self.nodes[flow.src], self.paths[flow.src, flow.dst]
        key = self.address(flow.src), self.address(flow.dst), flow.source_port | DESTINATION_PORT << 16
        window = (self.max_bdp if settings.global_t else path.bdp) if settings.has_win else 0
        flow.begin(host.nic_towards(key), self.queue.now, window, self.max_rtt if settings.global_t else path.rtt)
        flow.control = CONTROLS.get(settings.cc_mode, FixedRate)(flow, settings, self.queue)
        host.sending[self.address(flow.dst), flow.source_port] = flow
        flow.nic.flows.append(flow)
        flow.nic.try_transmit()

    def flow_complete(self, flow):
        src, dst = self.address(flow.src), self.address(flow.dst)
        self.fct_lines.append("%08x %08x %d %d %d %d %d %d" % (
            src, dst, flow.source_port, DESTINATION_PORT, flow.size, flow.start, self.queue.now - flow.start,
            self._ideal_time(flow)))
        del self.nodes[flow.src].sending[dst, flow.source_port]
        self.nodes[flow.dst].receiving.pop((src, flow.source_port), None)
        flow.complete = True
        flow.control.stop()
        self.unfinished.discard(flow)
        flow.on_complete()

    def _ideal_time(self, flow):
        """Section 11.1."""
        path, payload = self.paths[flow.src, flow.dst], self.settings.packet_payload_size
        total = flow.size + -(-flow.size // payload) * 48 & MASK32
        return path.rtt + total * 8 * 10**9 // path.bandwidth

    def record_pfc(self, port, frame):
        """Section 11.2."""
        self.pfc_lines.append("%d %d %d %d %d" % (
            self.queue.now, port.node.number, port.node.is_switch, port.number, frame.pauses))


def run_flows(config_path, limit_ns=5 * 10**9):
    """Run FLOW_FILE; flows that have not completed after `limit_ns` are reported as unfinished (6.4)."""
    queue = EventQueue()
    settings = Settings(config_path)
    network = PacketNetwork(settings, queue)
    flows = read_flows(settings.flow_file)
    remaining = len(flows)

    def completed():
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            queue.stop()

    for src, dst, size, start in flows:
        queue.at(start, network.send, src, dst, size, completed)
    queue.run(limit_ns)
    pauses = sum(line.endswith(" 1") for line in network.pfc_lines)
    return {"fct": network.fct_lines, "pfc": network.pfc_lines, "pfc_pause": pauses,
            "pfc_resume": len(network.pfc_lines) - pauses, "dropped": network.dropped,
            "unfinished": sorted((flow.src, flow.dst, flow.source_port) for flow in network.unfinished),
            "max_rtt_ns": network.max_rtt, "max_bdp_bytes": network.max_bdp, "events": queue.events_run}


# ---- table of cases (layout of the golden data packet-network) -----------------------------------------------------------

def sha256_of_lines(lines):
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def expected_lines(path):
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return file.read().splitlines()


def check_case(folder):
    """Completion order, every figure of fct.txt and every line of pfc.txt, as far as the files are there."""
    try:
        result = run_flows(os.path.join(folder, "config.txt"))
    except NotCovered as reason:
        return "not covered (%s)" % reason
    expected = os.path.join(folder, "expected")
    with open(os.path.join(expected, "summary.json")) as file:
        summary = json.load(file)
    same = (sha256_of_lines(result["fct"]) == summary["fct_sha256"] and result["pfc_pause"] == summary["pfc_pause"]
            and result["pfc_resume"] == summary["pfc_resume"] and not result["unfinished"])
    for key in ("fct", "pfc"):
        lines = expected_lines(os.path.join(expected, key + ".txt"))
        same = same and (lines is None or lines == result[key])
    return "equal" if same else "different"


def check(folder, only):
    with open(os.path.join(folder, "manifest.json")) as file:
        cases = [case for case in json.load(file)["cases"] if case["kind"] == "flows" and case["name"].startswith(only)]
    count = defaultdict(int)
    for case in cases:
        verdict = check_case(os.path.join(folder, case["name"]))
        count[verdict.split(" (")[0]] += 1
        if verdict != "equal":
            print(case["name"], verdict, flush=True)
    print(json.dumps(count))
    return 1 if count["different"] else 0


# ---- random cases -----------------------------------------------------------------------------------------------

class RandomCase:
    """A small valid configuration with all its files; `attempt` gives further cases for the same seed."""
    RATES = (25, 100, 100, 200, 400)
    UNITS_OF_RATE = "Gbps"

    def __init__(self, seed, attempt, hosts=None):
        """With `hosts`: a network for a workload of that many ranks, without flows and without hanging ones."""
        self.random = random.Random("%d/%d" % (seed, attempt))
        shapes = [self._star] if hosts else [self._star, self._star, self._leaf_spine, self._dual_nic, self._tree]
        self.topology, self.hosts = self._pick(*shapes)(*[hosts] * bool(hosts))
        self.settings = self._settings(loss=0 if hosts else 0.15)
        self.flows = [] if hosts else self._flows()
        if hosts:
            self.settings["L2_ACK_INTERVAL"] = 1

    def _pick(self, *choices):
        return self.random.choice(choices)

    # -- topologies: (nodes, switches, links), hosts have the low numbers

    def _link(self, a, b, rate=None, delay=None):
        return [a, b, rate or self._pick(*self.RATES), delay or self._pick("1us", "0.001ms", "500ns", "0.0025ms"), 0]

    def _star(self, hosts=None):
        hosts = hosts or self.random.randint(2, 10)
        rate, delay = self._pick(*self.RATES), self._pick("1us", "500ns")
        uniform = self.random.random() < 0.7
        links = [self._link(hosts, host, *((rate, delay) if uniform else ())) for host in range(hosts)]
        return (hosts + 1, [hosts], links), hosts

    def _leaf_spine(self):
        leaves, per_leaf, spines = self._pick(2, 3), self._pick(2, 3, 4), self._pick(1, 2, 3)
        hosts, rate, uplink = leaves * per_leaf, self._pick(25, 100), self._pick(100, 200)
        leaf, spine = [hosts + i for i in range(leaves)], [hosts + leaves + i for i in range(spines)]
        links = [self._link(host, leaf[host // per_leaf], rate, "1us") for host in range(hosts)]
        links += [self._link(a, b, uplink, "1us") for a in leaf for b in spine]
        return (hosts + leaves + spines, leaf + spine, links), hosts

    def _dual_nic(self):
        hosts, rate = self.random.randint(2, 5), self._pick(*self.RATES)
        links = [self._link(host, hosts + plane, rate, "1us") for plane in (0, 1) for host in range(hosts)]
        return (hosts + 2, [hosts, hosts + 1], links), hosts

    def _tree(self):
        """Three tiers without redundancy: root, two to three middle switches, hosts below them."""
        middle, below, rate = self._pick(2, 3), self._pick(1, 2, 3), self._pick(25, 100, 200)
        hosts = middle * below
        root, switches = hosts, [hosts + 1 + i for i in range(middle)]
        links = [self._link(root, switch, self._pick(100, 200, 400), "1us") for switch in switches]
        links += [self._link(switches[host // below], host, rate, "500ns") for host in range(hosts)]
        return (hosts + 1 + middle, [root] + switches, links), hosts

    # -- configuration and flows

    def _settings(self, loss):
        pick = self._pick
        mode = pick(DCQCN, DCQCN, HPCC, HPCC, DCTCP, TIMELY, 12, 12)
        minimum = {rate: pick(5, 20, 100) for rate in set(self.RATES)}
        spread, probability = pick(1, 50, 200), pick(0.1, 0.5, 1.0)
        if self.random.random() < loss:
            self.random.choice(self.topology[2])[4] = pick(0.001, 0.01)
        return {
            "ENABLE_QCN": pick(1, 1, 1, 0), "USE_DYNAMIC_PFC_THRESHOLD": 1,
            "PACKET_PAYLOAD_SIZE": pick(1000, 1000, 500, 1450, 4096),
            "TOPOLOGY_FILE": "topology.txt", "FLOW_FILE": "flow.txt", "TRACE_FILE": "trace.txt",
            "TRACE_OUTPUT_FILE": "out/mix.tr", "FCT_OUTPUT_FILE": "out/fct.txt", "PFC_OUTPUT_FILE": "out/pfc.txt",
            "QLEN_MON_FILE": "out/qlen.txt", "QLEN_MON_START": 10**17, "CC_MODE": mode,
            "ALPHA_RESUME_INTERVAL": pick(1, 5, 55), "RATE_DECREASE_INTERVAL": pick(4, 10), "CLAMP_TARGET_RATE": pick(0, 1),
            "RP_TIMER": pick(20, 100, 900), "EWMA_GAIN": pick(0.00390625, 0.0625), "FAST_RECOVERY_TIMES": pick(1, 5),
            "RATE_AI": pick("50Mb/s", "1000Mb/s"), "RATE_HAI": pick("100Mb/s", "2Gbps"), "MIN_RATE": pick("100Mb/s", "1Gbps"),
            "DCTCP_RATE_AI": pick("1000Mb/s", "100Mb/s"), "L2_CHUNK_SIZE": pick(4000, 1000), "L2_BACK_TO_ZERO": 0,
            "L2_ACK_INTERVAL": pick(1, 1, 1, 3000), "HAS_WIN": 1 if mode == HPCC else pick(0, 0, 1), "GLOBAL_T": pick(0, 1),
            "VAR_WIN": pick(0, 1), "FAST_REACT": pick(0, 1), "U_TARGET": pick(0.95, 0.8), "MI_THRESH": pick(0, 5),
            "INT_MULTI": pick(1, 1, 2), "MULTI_RATE": pick(0, 1), "RATE_BOUND": pick(1, 1, 0), "ACK_HIGH_PRIO": pick(0, 1),
            "KMIN_MAP": self._map(minimum), "KMAX_MAP": self._map({rate: low + spread for rate, low in minimum.items()}),
            "PMAX_MAP": self._map({rate: probability for rate in minimum}), "BUFFER_SIZE": pick(1, 1, 2, 32)}

    @staticmethod
    def _map(values):
        return " ".join([str(len(values))] + ["%d %s" % (rate * 10**9, value) for rate, value in sorted(values.items())])

    def _flows(self):
        """(src, dst, bytes, start in ns): incast, permutation or random pairs."""
        count, pattern = self.random.randint(1, 12), self._pick("incast", "incast", "permutation", "random")
        largest, latest = self._pick(3000, 60_000, 250_000, 250_000), self._pick(0, 0, 2000, 20_000)
        target, flows = self.random.randrange(self.hosts), []
        for i in range(count):
            src = self.random.randrange(self.hosts) if pattern == "random" else i % self.hosts
            dst = {"incast": target, "permutation": (src + 1 + target) % self.hosts}.get(pattern)
            while dst is None or dst == src:
                dst = self.random.randrange(self.hosts)
            flows.append((src, dst, self.random.randint(1, largest), self.random.randint(0, latest)))
        return flows

    def files(self):
        nodes, switches, links = self.topology
        lines = ["%d %d %d" % (nodes, len(switches), len(links)), " ".join(map(str, switches))]
        lines += ["%d %d %d%s %s %s" % (a, b, rate, self.UNITS_OF_RATE, delay, error) for a, b, rate, delay, error in links]
        flows = [str(len(self.flows))] + ["%d %d 3 %d %d %.9f" % (src, dst, DESTINATION_PORT, size, start / 1e9)
                                          for src, dst, size, start in self.flows]
        return {"topology.txt": lines, "flow.txt": flows, "trace.txt": ["0"],
                "config.txt": ["%s %s" % item for item in self.settings.items()]}

    def write(self, folder):
        for name, lines in self.files().items():
            write_lines(os.path.join(folder, name), lines)


def write_random_case(seed, folder, limit_ns=10**8):
    """Same layout as a golden case; a case whose flows hang (6.4) is replaced by the next attempt."""
    os.makedirs(os.path.join(folder, "expected"), exist_ok=True)
    for attempt in range(100):
        RandomCase(seed, attempt).write(folder)
        result = run_flows(os.path.join(folder, "config.txt"), limit_ns)
        if not result["unfinished"]:
            break
    summary = {"flows": len(result["fct"]), "fct_sha256": sha256_of_lines(result["fct"]),
               "maxRtt_ns": result["max_rtt_ns"], "maxBdp_bytes": result["max_bdp_bytes"],
               "pfc_pause": result["pfc_pause"], "pfc_resume": result["pfc_resume"], "dropped": result["dropped"]}
    write_lines(os.path.join(folder, "expected", "fct.txt"), result["fct"])
    write_lines(os.path.join(folder, "expected", "pfc.txt"), result["pfc"])
    write_lines(os.path.join(folder, "expected", "summary.json"), [json.dumps(summary, indent=1)])


def write_lines(path, lines):
    with open(path, "w") as file:
        file.writelines(line + "\n" for line in lines)


# ---- command line -----------------------------------------------------------------------------------------------

def print_text(result):
    for line in result["fct"]:
        print(line)
    print("pfc pause %d resume %d" % (result["pfc_pause"], result["pfc_resume"]))
    for src, dst, port in result["unfinished"]:
        print("unfinished %d -> %d port %d" % (src, dst, port))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?")
    parser.add_argument("--format", choices=("json", "text"), default="json")
    parser.add_argument("--random", type=int, metavar="SEED")
    parser.add_argument("--out", metavar="FOLDER", help="for --random; default packet-case-SEED")
    parser.add_argument("--check", metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="PREFIX", help="for --check: case names that start so")
    arguments = parser.parse_args()
    if arguments.check:
        return check(arguments.check, arguments.only)
    if arguments.random is not None:
        write_random_case(arguments.random, arguments.out or "packet-case-%d" % arguments.random)
        return 0
    if not arguments.config:
        parser.error("a configuration file is needed")
    try:
        result = run_flows(arguments.config)
    except NotCovered as reason:
        print(json.dumps({"not_covered": str(reason)}))
        return 3
    if arguments.format == "json":
        print(json.dumps(result))
    else:
        print_text(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
