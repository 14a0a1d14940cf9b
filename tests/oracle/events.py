# SPDX-License-Identifier: Apache-2.0
"""Event queue shared by the executable specifications: time order, then scheduling order.

astra-sim.md section 4.1; packet-network.md section 1.
"""
import heapq


class EventQueue:
    def __init__(self):
        self.now = 0
        self.sequence = 0       # of the event being run
        self.events_run = 0
        self.stopped = False
        self._scheduled = 0
        self._heap = []

    def at(self, time, action, *arguments):
        """Schedule action(*arguments); the returned (time, sequence) identifies the event."""
        self._scheduled += 1
        heapq.heappush(self._heap, (time, self._scheduled, action, arguments))
        return time, self._scheduled

    def after(self, delay, action, *arguments):
        return self.at(self.now + delay, action, *arguments)

    def next_time(self):
        return self._heap[0][0] if self._heap else None

    def run(self, end=None):
        """Run until nothing is left, stop() was called or the next event lies after `end`."""
        while self._heap and not self.stopped:
            if end is not None and self._heap[0][0] > end:
                return
            self.now, self.sequence, action, arguments = heapq.heappop(self._heap)
            self.events_run += 1
            action(*arguments)

    def stop(self):
        self.stopped = True


class Timer:
    """An event that can be cancelled; `pending` until it runs or is cancelled."""

    def __init__(self, queue, delay, action):
        self.time, self.action, self.pending = queue.now + delay, action, True
        queue.at(self.time, self._fire)

    def _fire(self):
        if self.pending:
            self.pending = False
            self.action()

    def cancel(self):
        self.pending = False
