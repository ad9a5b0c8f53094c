"""Files that are truncated, flipped, mixed up: each is read, or refused with its reason."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.feature_files import FEATURES
from support.sample_files import pdf_of, sample_files
from support.stress import Tally, amount

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions

pytestmark = pytest.mark.slow


UNCLEAR = re.compile(r"struct\.error|AttributeError|IndexError|UnboundLocalError|AssertionError")
"""Errors of the reader rather than of the file."""


def truncated(data: bytes, rng: random.Random, _: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def flipped(data: bytes, rng: random.Random, _: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 3, 30, 300))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def overwritten(data: bytes, rng: random.Random, _: bytes) -> bytes:
    begin = rng.randrange(len(data))
    return data[:begin] + rng.randbytes(rng.randrange(1, 200)) + data[begin + 50 :]


def doubled(data: bytes, rng: random.Random, _: bytes) -> bytes:
    begin = rng.randrange(len(data))
    return data[:begin] + data[begin // 2 :]


def mixed(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]


def repeated(data: bytes, rng: random.Random, _: bytes) -> bytes:
    begin = rng.randrange(len(data))
    return data[:begin] + data[begin : begin + 100] * 50 + data[begin:]


def renumbered(data: bytes, rng: random.Random, _: bytes) -> bytes:
    numbers = list(re.finditer(rb"\d+", data)) or [re.match(b"", data)]
    start, end = rng.choice(numbers).span()
    return data[:start] + rng.choice((b"-1", b"0", b"99999999999", b"1e99", b"")) + data[end:]


def repacked(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Change one part of a packed file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        return renumbered(data, rng, other)
    name = rng.choice([name for name, part in parts.items() if part])
    parts[name] = rng.choice((truncated, flipped, overwritten, repeated, renumbered))(
        parts[name], rng, other
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return file.getvalue()


def same(data: bytes, rng: random.Random, other: bytes) -> bytes:
    return data


CHANGES: tuple[Callable[[bytes, random.Random, bytes], bytes], ...] = (
    truncated,
    flipped,
    overwritten,
    doubled,
    mixed,
    repeated,
    renumbered,
    *[repacked] * 6,
    same,  # under the name of another
)


def test_broken_files_are_read_or_skipped_with_error(tmp_path: Path) -> None:
    rng = random.Random(18)
    seeds = [(path.suffix, path.read_bytes()) for path in sample_files(tmp_path / "seeds")]
    for name, (write, _, _) in FEATURES.items():
        write(tmp_path / name)
        seeds.append((Path(name).suffix, (tmp_path / name).read_bytes()))
    text = b"BT /F 12 Tf 20 250 Td (Tea is a drink.) Tj ET"
    seeds.append((".pdf", pdf_of(text, text)))
    docs = tmp_path / "docs"
    docs.mkdir()
    count = amount(10, 200) * len(seeds)
    for number in range(count):
        suffix, data = seeds[number % len(seeds)]
        change = rng.choice(CHANGES)
        other_suffix, other = rng.choice(seeds)
        if change is same or rng.random() < 0.1:
            suffix = other_suffix
        (docs / f"{number:05}{suffix}").write_bytes(change(data, rng, other))
    options = ReadOptions(seconds=60, memory_bytes=1_500_000_000)
    graph = NodeGraph(docs, on_error="skip", progress=False, reading=options)
    tally = Tally("broken files")
    read = {node.metadata["file_name"] for node in graph.nodes("ROOT")}
    errors = {Path(name).name: error for name, error in graph.read_report.skipped.items()}
    for path in sorted(docs.iterdir()):
        with tally.trying(path.name):
            error = errors.get(path.name)
            if error is None:
                # An empty mailbox, or a file of empty lines, has no document.
                assert path.name in read or path.suffix in (".jsonl", ".mbox"), "lost"
                tally.note("read")
                continue
            tally.note(error.kind)
            assert isinstance(error, ReadError)
            assert path.name in str(error), "an error that does not name its file"
            assert error.kind not in ("too slow to parse", "crashing their parser"), str(error)
            assert not UNCLEAR.search(str(error))
    for group in ("section", "page", "table", "symbol"):
        with tally.trying(group):
            for node in graph.nodes(group):
                assert node.root.text[node.start : node.end] == node.text
                assert node.place.startswith(node.metadata["file_name"])
    tally.check()
