"""The command line on a large folder: CPU seconds and memory of each command.

Files are Markdown of some 6.6 kB, put together at random (fixed seed) from the sentences of
HotpotQA and, one in five, of CMRC 2018. Every command is a new process; its CPU time is its own and
its children's, its memory the most that was resident in one of them.
``python benchmarks/command_line.py --data ../shared/data``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from datasets import hotpotqa
from harness import arguments, bytes_on_disk, cmrc, in_new_process, show

FILE = 6_600  # bytes


class Cost(NamedTuple):
    """What a command took: CPU time in seconds, memory in millions of bytes."""

    seconds: float
    memory: float


def write_files(data: Path, folder: Path, count: int) -> None:
    """Write so many files."""
    english = [d.text for d in hotpotqa(data).documents]
    languages = {
        "en": ([s for t in english for s in re.split(r"(?<=[.!?])\s+", t) if len(s) > 20], " "),
        "zh": ([s for t in cmrc(data)[0] for s in re.split("(?<=[。！？])", t) if len(s) > 6], ""),
    }
    rng = random.Random(331)
    for number in range(count):
        sentences, joint = languages["zh" if number % 5 == 0 else "en"]
        parts, length = [f"# {rng.choice(sentences)[:40]}"], 0
        while length < FILE:
            if rng.random() < 0.2:
                parts.append(f"## {rng.choice(sentences)[:30]} {rng.randrange(10_000)}")
            parts.append(joint.join(rng.choices(sentences, k=rng.randint(2, 6))))
            length += len(parts[-1].encode())
        path = folder / f"part{number // 500:03}" / f"page{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("\n\n".join(parts).encode())


def command(folder: Path, *words: str) -> Cost:
    """Run a command of nodekin in a folder."""
    program = [sys.executable, "-m", "nodekin", *words]
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(program, cwd=folder, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit((folder / "output.txt").read_text(encoding="utf-8")[-2000:])
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = arguments(__doc__)
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--files", type=int, default=50_000, help="how many files")
    parser.add_argument("--folder", type=Path, help="where to work; what was indexed there is used")
    return parser.parse_args()


def main() -> None:
    """Measure, and print a table."""
    args = options()
    if args.work:
        write_files(Path(args.work["data"]), Path(args.work["folder"]), args.work["count"])
        print("{}")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        docs = folder / "docs"
        costs = {"a bare `nodekin --version`": command(folder, "--version")}
        if not docs.exists():
            work = {"data": str(args.data), "folder": str(docs), "count": args.files}
            in_new_process(__file__, work)  # memory of this process would count in its children
        if not (folder / ".nodekin").exists():
            costs["index"] = command(folder, "index", "docs", "--quiet")
        questions = (
            ["Which", "magazine", "was", "started", "first?"],
            ["范廷颂是什么时候被任为主教的？"],
        )
        costs["search, the first"] = command(folder, "search", *questions[0])
        costs["search"] = median([command(folder, "search", *q) for q in questions * 3])
        costs["index again, nothing changed"] = median(
            [command(folder, "index", "docs", "--quiet") for _ in range(3)]
        )
        changed = docs / "part000" / "page00000.md"
        changed.write_bytes(changed.read_bytes() + b"\n\nOne more line.")
        costs["index again, one file changed"] = command(folder, "index", "docs", "--quiet")
        size = sum(path.stat().st_size for path in docs.rglob("*.md"))
        disk = bytes_on_disk(folder / ".nodekin")
    show(
        f"{args.files:,} files, {size / 1e6:.0f} MB; {disk / 1e6:.0f} MB on disk",
        ("command", "CPU s", "MB"),
        [(name, f"{cost.seconds:.2f}", f"{cost.memory:.0f}") for name, cost in costs.items()],
    )


if __name__ == "__main__":
    main()
