"""The process that parses files: it takes paths from its input, and writes what they hold.

Messages are JSON, each after its length in eight bytes; nothing that a parser wrote is executed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO

from ..codec import encode
from ..errors import ReadError
from .file_records import Records, records_of, records_of_foreign
from .formats import format_of
from .read_options import ReadOptions
from .reader_registry import UnloadableError, receive_readers, registered_reader
from .source_file import SourceFile


def write_message(stream: BinaryIO, message: Any) -> None:
    """Write one message."""
    data = json.dumps(message, default=str).encode("ascii")
    stream.write(len(data).to_bytes(8, "big") + data)
    stream.flush()


def read_message(stream: BinaryIO) -> Any:
    """Read one message, None at the end."""
    size = stream.read(8)
    if len(size) < 8:
        return None
    data = stream.read(int.from_bytes(size, "big"))
    return json.loads(data)


def parse(source: SourceFile) -> Records:
    """Read a file by a registered reader, or by its format; a single document has an empty id.

    Raises:
        ReadError: If it can't be read.
    """
    if registered := registered_reader(source.path):
        return records_of_foreign(registered[1].read(source.path))
    file_format = format_of(source.path)
    if file_format is None:
        raise ReadError(f"{source.path} has no format that is known here")
    return records_of(file_format.read(source))


def main() -> None:
    """Serve until the input ends."""
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:  # what libraries print is no reply
        os.dup2(nowhere.fileno(), 1)

    def ocr(image: bytes) -> str:
        write_message(replies, ["image", base64.b64encode(image).decode("ascii")])
        return str(read_message(requests))

    settings = read_message(requests)
    has_ocr, seconds = settings.pop("ocr"), settings["seconds"]
    receive_readers(settings.pop("readers"))
    options = ReadOptions(**settings)
    _limit_memory(options.memory_bytes)
    write_message(replies, ["ready"])
    while (path := read_message(requests)) is not None:
        with _time_limit(2 * seconds + 10):
            reply = _reply(SourceFile(Path(path), options, ocr if has_ocr else None))
        write_message(replies, reply)


def _reply(source: SourceFile) -> list[Any]:
    try:
        records = parse(source)
        try:
            return ["read", encode(records)]
        except TypeError as error:  # a user's reader gave metadata of a class of its own
            return ["unloadable", str(error)]
    except UnloadableError as error:
        return ["unloadable", str(error)]
    except ReadError as error:
        return ["error", str(error), error.kind, error.skippable]
    except MemoryError:
        limit = source.options.memory_bytes
        return [
            "error",
            f"can't read {source.path}: it takes more memory than the {limit:,} "
            "bytes of ReadOptions(memory_bytes=...)",
            "too large for the memory limit",
            False,
        ]
    except OSError as error:
        return [
            "error",
            f"can't read {source.path}: {error.strerror or error}",
            "unreadable",
            False,
        ]
    except BaseException as error:  # a parser's own, some of which derive from nothing else
        reason = " ".join(str(error).split())[:300]
        return [
            "error",
            f"can't read {source.path}: {type(error).__name__}: {reason}",
            "damaged",
            False,
        ]


def _limit_memory(limit: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextlib.contextmanager
def _time_limit(seconds: float) -> Any:
    """End the process where nobody is left to end it."""
    timer = getattr(signal, "setitimer", None)
    if timer is not None:
        timer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        if timer is not None:
            timer(signal.ITIMER_REAL, 0)
