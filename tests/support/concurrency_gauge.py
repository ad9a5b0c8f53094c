"""A language model that counts how many calls run at the same time."""

import asyncio
import threading
import time


class ConcurrencyGauge:
    """A language model that counts how many calls run at the same time.

    Each call waits until at least ``least`` calls are running.
    """

    def __init__(self, least=1):
        self.least = least
        self.now = self.most = self.calls = 0
        self._lock = threading.Lock()

    def complete(self, prompt):
        self._begin()
        while self.most < self.least:
            time.sleep(0.001)
        time.sleep(0.005)  # this gives another call time to start
        self._end()
        return "An answer [1]."

    async def acomplete(self, prompt):
        self._begin()
        while self.most < self.least:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.005)
        self._end()
        return "An answer [1]."

    def _begin(self):
        with self._lock:
            self.calls += 1
            self.now += 1
            self.most = max(self.most, self.now)

    def _end(self):
        with self._lock:
            self.now -= 1
