"""Parse files in processes that may crash, hang or grow: only their own file is lost."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from ..codec import decode
from ..errors import ReadError
from .file_records import Records
from .read_options import Ocr, ReadOptions
from .reader_registry import UnloadableError, readers_to_send
from .worker import read_message, write_message

K = TypeVar("K")

_BEGINNING = 300  # seconds in which a process has to begin

# Python puts the working directory before all else, where a file of a corpus may be called json.py.
_PROGRAM = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    f"from {__package__}.worker import main; main()"
)


@contextlib.contextmanager
def parsing(
    files: Sequence[tuple[K, Path]], options: ReadOptions
) -> Iterator[Iterator[tuple[K, Records | ReadError | UnloadableError]]]:
    """Begin to parse files on all cores; give each as it is ready, with what it holds.

    What is not parsed at the end of the block is left alone.

    Args:
        files: The files, each with what it is known by.
        options: How they are read.
    """
    if not files:
        yield iter(())
        return
    count = min(len(files), options.workers or _cores())
    workers = [Worker(options) for _ in range(count)]
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def parse(path: Path) -> Records:
        worker = idle.get()
        try:
            return worker.parse(path)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(count, "nodekin reading")
    futures = {pool.submit(parse, path): key for key, path in files}
    try:
        yield _results(futures)
    finally:
        for future in futures:
            future.cancel()
        for worker in workers:
            worker.close()
        pool.shutdown()


def _results(
    futures: Mapping[Future[Records], K],
) -> Iterator[tuple[K, Records | ReadError | UnloadableError]]:
    for future in as_completed(futures):
        try:
            yield futures[future], future.result()
        except (ReadError, UnloadableError) as error:
            yield futures[future], error


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Worker:
    """A process that parses one file after the other, and another one where it had to be ended.

    Args:
        options: How files are read.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def parse(self, path: Path) -> Records:
        """Return the records of what a file holds.

        Raises:
            ReadError: If it can't be read, or takes the parser too long, or ends it.
            UnloadableError: If its reader is a user's that the process can't load.
        """
        for attempt in (1, 2):
            process, fresh = self._running()
            try:
                if fresh:
                    _wait_until_ready(process)
                reply, late = self._exchange(process, str(path))
            except OSError:  # it had ended before
                reply, late = None, False
            if reply is None:
                self._end()
                if attempt == 1 and not fresh and not late:
                    continue  # perhaps what an earlier file left behind
                raise self._lost(path, process, late)
            break
        if reply[0] == "unloadable":
            raise UnloadableError(reply[1])
        if reply[0] == "error":
            raise ReadError(reply[1], reply[2], skippable=reply[3])
        return cast("Records", decode(reply[1]))

    def _running(self) -> tuple[subprocess.Popen[bytes], bool]:
        with self._lock:
            if self._closed:
                raise ReadError("reading was interrupted")
            fresh = self._process is None
            if self._process is None:
                self._process = _start(self._options)
            return self._process, fresh

    def _exchange(self, process: subprocess.Popen[bytes], path: str) -> tuple[Any, bool]:
        """Send a path, answer what is asked of images, return the reply and whether it is late."""
        requests, replies = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        message: Any = path
        while True:
            late = threading.Event()

            def end(late: threading.Event = late) -> None:
                late.set()
                process.kill()

            timer = threading.Timer(self._options.seconds, end)
            timer.daemon = True
            timer.start()
            try:
                write_message(requests, message)  # type: ignore[arg-type]
                reply = read_message(replies)  # type: ignore[arg-type]
            finally:
                timer.cancel()
            if reply is None or reply[0] != "image":
                return reply, late.is_set()
            try:
                message = _recognized(cast("Ocr", self._options.ocr), reply[1])
            except Exception as error:  # a user's function
                self._end()  # it waits for an answer
                raise ReadError(
                    f"can't read {path}: ocr failed on a page: {type(error).__name__}: {error}"
                ) from error

    def _lost(self, path: Path, process: subprocess.Popen[bytes], late: bool) -> ReadError:
        if late:
            return ReadError(
                f"can't read {path}: its parser took more than {self._options.seconds:g} seconds; "
                "leave it out, or give it more: ReadOptions(seconds=...)",
                "too slow to parse",
            )
        return ReadError(
            f"can't read {path}: its parser ended with status {process.wait()}, as it does where "
            "a file is damaged or takes more memory than ReadOptions(memory_bytes=...)",
            "crashing their parser",
        )

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            process.wait()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._closed = True
        self._end()


def _start(options: ReadOptions) -> subprocess.Popen[bytes]:
    paths = [path or os.getcwd() for path in sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    settings = {**_plain(options), "ocr": options.ocr is not None, "readers": readers_to_send()}
    write_message(cast("Any", process.stdin), settings)
    return process


def _wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process can take files: on a busy machine that is no fault of the first one.

    Raises:
        OSError: If it ends before, or has not begun after minutes.
    """
    timer = threading.Timer(_BEGINNING, process.kill)
    timer.daemon = True
    timer.start()
    try:
        if read_message(cast("Any", process.stdout)) != ["ready"]:
            raise OSError("the process ended before it was ready")
    finally:
        timer.cancel()


def _plain(options: ReadOptions) -> dict[str, Any]:
    from dataclasses import replace

    return asdict(replace(options, ocr=None))


def _recognized(ocr: Ocr, image: str) -> str:
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(image))) as picture:
        return str(ocr(picture))
