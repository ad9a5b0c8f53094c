"""A model that counts its concurrent calls."""

import asyncio
import threading
import time


class ConcurrencyGauge:
    """A model that counts its concurrent calls. Calls wait until ``least`` calls run."""

    def __init__(self, least=1):
        self.least = least
        self.now = self.most = self.calls = 0
        self._lock = threading.Lock()

    def complete(self, prompt):
        self._begin()
        while self.most < self.least:
            time.sleep(0.001)
        time.sleep(0.005)  # time for another call
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
