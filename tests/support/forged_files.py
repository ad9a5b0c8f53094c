"""Forge the files of an index like an attacker would, and open them in child processes."""

from __future__ import annotations

import json
import math
import os
import random
import resource
import signal
import sqlite3
import traceback
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from nodekin.retrievers.indexes.stored_array import checksums_of

SECONDS = 10
"""The CPU time limit of a child process in seconds.

A child process that waits for ten times as long is killed as well.
"""

_MEMORY = 2_000_000_000  # in bytes, more than the memory of the parent process

NUMBERS = [-1, 0, 1, 2, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63)]
"""Numbers at the limits of common integer types."""

VALUES = [
    *(None, "", b"", "x", b"\xff", b"\0" * 12, 1.5, float("inf"), *NUMBERS),
    *(b"{}", b"[]", b"[[[[", b"[" * 50_000, b'{"$type":"tuple"}', b'{"$type":"x","value":1}'),
    *(b'{"$type":"dict","value":[[[],1]]}', b'{"$type":"date","value":"x"}', b'{"n":1e999}'),
    *(b'{"$type":"set","value":[[1]]}', b"\x00" + b"9" * 30, "[" * 50_000, b"null", b"9" * 5_000),
]
"""Values that can be written to columns of any type."""


def in_child(call: Callable[[], object], allowed: tuple[type[BaseException], ...]) -> str:
    """Make a call in a forked process, and describe how it ended.

    Args:
        call: The function to call.
        allowed: The documented exceptions.

    Returns:
        An empty string if the call returned or raised an allowed exception, otherwise a
        description.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 0
        try:
            os.close(read)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            # this is the CPU time of this process, because the machine may be busy
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(10 * SECONDS)
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, size + _MEMORY))
            call()
        except BaseException as error:
            # subclasses do not count: a KeyError is not a LookupError here
            status = 0 if type(error) in allowed else 3
            os.write(write, traceback.format_exc()[-1_500:].encode("utf-8", "replace"))
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "" if status == 0 else f"ended with {status}: {text}"


def forge_arrays(path: Path, rng: random.Random, only: str = "") -> str:
    """Change the header or the arrays of an index file without invalidating its checksum.

    Args:
        path: The path of the file.
        rng: A generator of random numbers.
        only: A prefix of the names of arrays. Only these arrays are changed.
    """
    header, body = read_parts(path)
    names = [name for name in header["arrays"] if name.startswith(only)]
    name = rng.choice(names)
    kind, shape = header["arrays"][name]
    how = rng.choice(
        ["dtype", "shape", "values", "values", "values", "missing", "header", "length"]
    )
    what = f"{how} of {name}"
    if how == "dtype":
        kinds = ["|O", "V8", "<M8[s]", "<U4", "<c16", "<f8", "<i8", "<u1", "|b1", "<f2", "x", ">i4"]
        header["arrays"][name][0] = rng.choice([*kinds, ["<i4", "<i4"], None, 7])
    elif how == "shape":
        sizes = [*NUMBERS, 3, 2**20, 1.5, "3", None, True]
        shapes = [
            [rng.choice(sizes)],
            [rng.choice(sizes), rng.choice(sizes)],
            [],
            [1] * 40,
            5,
            None,
        ]
        header["arrays"][name][1] = rng.choice(shapes)
    elif how == "values":
        start = _start(header["arrays"], name)
        itemsize = int(kind[2:])
        count = 1
        for size in shape:
            count *= size
        for _ in range(rng.choice([1, 1, 3, 50])):
            if count:
                at = start + rng.randrange(count) * itemsize
                number = rng.choice([*NUMBERS, rng.randrange(300)]) % (1 << (8 * itemsize))
                body[at : at + itemsize] = number.to_bytes(itemsize, "little")
    elif how == "missing":
        del header["arrays"][name]
    elif how == "header":
        field = rng.choice(list(header))
        values = [None, [], {}, "x", "[" * 9, *NUMBERS, [[[]]]]
        header[field] = rng.choice(values)
    data = json.dumps(header).encode()
    if rng.random() < 0.05:
        data = rng.choice([b"[" * 100_000, b"[]", b"1" * 5_000, b"\xff"])
    data += b" " * (-(8 + len(data)) % rng.choice([64, 64, 64, 1]))
    size = rng.choice([*NUMBERS, len(data) + 64]) if how == "length" else len(data)
    body += bytes(rng.choice([0, 0, 0, 64, 100_000]))
    write_parts(path, size, data, body, header)
    return what


def read_parts(path: Path) -> tuple[dict[str, Any], bytearray]:
    """Return the header of an index file and the bytes of its arrays."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    size = _start(header["arrays"])
    return header, bytearray(content[8 + length : 8 + length + size])


def write_parts(path: Path, size: int, data: bytes, body: bytes, header: Any) -> None:
    """Write an index file with valid checksums.

    Args:
        path: The path of the file.
        size: The length of the header that the file declares.
        data: The header as JSON, padded with spaces up to the first array.
        body: The bytes of the arrays.
        header: The header, which describes the arrays unless it is damaged.
    """
    start = (size % 2**64).to_bytes(8, "little") + data
    checksums = b""
    with suppress(AttributeError, KeyError, OverflowError, TypeError, ValueError):
        for name in header["arrays"]:
            first = _start(header["arrays"], name)
            content = body[first : first + _size(*header["arrays"][name])]
            checksums += checksums_of(np.frombuffer(content, np.uint8)).tobytes()
    end = zlib.crc32(checksums, zlib.crc32(start)).to_bytes(4, "little")
    path.write_bytes(start + body + checksums + end)


def _size(kind: str, shape: list[int]) -> int:
    """Return the size of an array in bytes."""
    return math.prod(shape, start=int(kind[2:]))


def _start(arrays: dict[str, Any], sought: str = "") -> int:
    """Return the start of an array, or the end of all arrays."""
    start = 0
    for name, described in arrays.items():
        if name == sought:
            break
        size = _size(*described)
        start += size + -size % 64
    return start


def forge_database(path: Path, rng: random.Random) -> str:
    """Change rows or the schema of a graph file."""
    with closing(sqlite3.connect(path)) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        table = rng.choice(tables)
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        how = rng.choice(["rows", "rows", "rows", "rows", "delete", "schema", "pragma"])
        what = f"{how} of {table}"
        with suppress(sqlite3.Error):
            if how == "rows":
                for _ in range(rng.choice([1, 1, 2])):
                    column, value = rng.choice(columns), rng.choice(VALUES)
                    what += f" {column} = {value!r:.40}"
                    where = rng.choice(
                        ["1", "1", "rowid % 2", "rowid = (SELECT max(rowid) FROM t)"]
                    )
                    where = where.replace(" t)", f" {table})")
                    # An attacker does not have to respect the constraints.
                    db.execute("PRAGMA ignore_check_constraints = ON")
                    db.execute(f"UPDATE OR REPLACE {table} SET {column} = ? WHERE {where}", [value])
            elif how == "delete":
                db.execute(f"DELETE FROM {table} WHERE {rng.choice(['1', 'rowid % 2'])}")
            elif how == "pragma":
                pragma = rng.choice(["user_version", "application_id", "journal_mode"])
                values = [0, 7, -1] if pragma != "journal_mode" else ["DELETE", "WAL"]
                db.execute(f"PRAGMA {pragma} = {rng.choice(values)}")
            else:
                endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                names = ", ".join(f"i AS {column}" for column in columns)
                trigger = f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN {{}}; END"
                rename = f"ALTER TABLE {table} RENAME TO old"
                statements = rng.choice(
                    [
                        [rename, f"CREATE VIEW {table} AS {endless} SELECT {names} FROM n"],
                        [rename, f"CREATE VIEW {table} AS SELECT * FROM old"],
                        [rename, f"CREATE TABLE {table} (x)"],
                        [rename],
                        [f"ALTER TABLE {table} ADD COLUMN more GENERATED ALWAYS AS (1)"],
                        [trigger.format("DELETE FROM nodes")],
                        [f"CREATE INDEX extra ON {table} (random())"],
                        [f"CREATE INDEX extra ON {table} (abs({columns[0]}))"],
                        ["CREATE VIRTUAL TABLE extra USING fts5(x)"],
                        ["DROP INDEX nodes_by_place"],
                        ["CREATE TABLE extra (x)"],
                    ]
                )
                what += f" {statements[-1]:.60}"
                for statement in statements:
                    db.execute(statement)
        db.commit()
    return what


def forge_bytes(path: Path, rng: random.Random) -> str:
    """Overwrite some bytes of a file."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 3, 20])):
        at = rng.randrange(len(content))
        content[at : at + rng.choice([1, 2, 16])] = rng.randbytes(rng.choice([1, 2, 16]))
    path.write_bytes(content)
    return f"bytes of {path.name}"


def forge_json(path: Path, rng: random.Random) -> str:
    """Change the settings in a workspace file."""
    record = json.loads(path.read_text())
    deep = "[" * 100_000
    values = [None, [], {}, "", "x", "\ud800", "a\0b", True, 1.5, -1, 10**400, "[" * 99, "openai:x"]
    field = rng.choice([*record, "more"])
    record[field] = rng.choice(values)
    text = json.dumps(record)
    other = [deep, deep + "]" * 100_000, "", "null", "[]", '"x"', "{", '{"version": 1}', "NaN"]
    if rng.random() < 0.3:
        text = rng.choice(
            [*other, '{"a":' * 50_000, "1" * 10_000, text[: rng.randrange(len(text))]]
        )
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        data = rng.randbytes(99)
    path.write_bytes(data)
    return f"{data[:120]!r}"


def forge_ignore_file(path: Path, rng: random.Random) -> str:
    """Write random patterns to an ignore file."""
    pieces = ["*", "**", "/", "?", "a", "b", "[!a]", "[a-z]", "[", "]", "\\", "!", "*a", "**/", "{"]
    pieces += ["\ud800", "\0", "é", "#", " ", "\n", "[[:alpha:]]", "(a+)+", "|", "$", "^"]
    few = rng.sample(pieces, rng.randint(1, 6))
    text = "".join(rng.choices(few, k=rng.choice([3, 20, 300, 20_000])))
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return repr(text[:120])
