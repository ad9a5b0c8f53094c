"""Files that are truncated, flipped, mixed up: each is read, or refused with its reason."""

from __future__ import annotations

import io
import random
import re
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.feature_files import FEATURES
from support.sample_files import sample_files
from support.stress import Tally, amount

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions

pytestmark = pytest.mark.slow


UNCLEAR = re.compile(
    r"struct\.error|: PanicException|AttributeError|IndexError|UnboundLocalError|AssertionError"
)
"""Errors of the reader rather than of the file."""


def changed(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Truncate, flip, overwrite, repeat, mix or renumber a file."""
    at, size = rng.randrange(len(data)), rng.randrange(1, 200)
    kind = rng.choice(["truncated", "flipped", "overwritten", "doubled", "mixed", "number"])
    if kind == "truncated":
        return data[:at]
    if kind == "flipped":
        flipped = bytearray(data)
        for _ in range(size):
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == "overwritten":
        return data[:at] + rng.randbytes(size) + data[at + 50 :]
    if kind == "doubled":
        return data[:at] + data[at : at + size] * rng.choice([2, 50]) + data[at:]
    if kind == "mixed":
        return data[:at] + other[rng.randrange(len(other)) :]
    numbers = list(re.finditer(rb"\d+", data)) or [re.match(b"", data)]
    start, end = rng.choice(numbers).span()
    return data[:start] + rng.choice((b"-1", b"0", b"99999999999", b"1e99", b"")) + data[end:]


def repacked(data: bytes, rng: random.Random, other: bytes) -> bytes:
    """Change one part of a packed file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile:
        return changed(data, rng, other)
    name = rng.choice([name for name, part in parts.items() if part])
    parts[name] = changed(parts[name], rng, other)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)
    return file.getvalue()


def test_broken_files_are_read_or_skipped_with_error(tmp_path: Path) -> None:
    rng = random.Random(18)
    seeds = [(path.suffix, path.read_bytes()) for path in sample_files(tmp_path / "seeds")]
    seeds += ((Path(name).suffix, make()[0]) for name, make in FEATURES.items())
    if find_spec("office_oxide"):
        old_files = Path(__file__).parents[1] / "support" / "office97"
        seeds += ((path.suffix, path.read_bytes()) for path in sorted(old_files.glob("*.[dp]*")))
    docs = tmp_path / "docs"
    docs.mkdir()
    count = amount(10, 200) * len(seeds)
    for number in range(count):
        suffix, data = seeds[number % len(seeds)]
        other_suffix, other = rng.choice(seeds)
        kind = rng.random()
        if kind < 0.1:  # under the name of another format
            suffix = other_suffix
        else:
            data = (repacked if kind < 0.5 else changed)(data, rng, other)
        (docs / f"{number:05}{suffix}").write_bytes(data)
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
