"""Draw the pictures of the README from a real run.

``python docs/pictures/draw.py`` writes them to this folder; a test compares them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from click.testing import CliRunner

from nodekin import NodeGraph, Retriever
from nodekin.adapters.cli.app import app
from nodekin.nodegraph import Document, split_paragraphs, split_sentences

FOLDER = Path(__file__).parent
REPO = FOLDER.parents[1]
INK, PALE, OURS, PEERS = "#1f2933", "#d5dbe1", "#0b7285", "#9aa5b1"
SANS = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"
COMMANDS = (
    "nodekin index docs",
    "nodekin search who pays the freight -k 1",
    "nodekin search 谁付运费 -k 1",
)


def svg(width: float, height: float, parts: Sequence[str], alt: str, paper: str = "#fff") -> str:
    """Return a self-contained picture with a description for screen readers."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="{SANS}" font-size="14">'
        f"<title>{escape(alt)}</title>"
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{paper}"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def text(x: float, y: float, words: str, fill: str = INK, more: str = "") -> str:
    """Return a line of text that starts at a position."""
    return f'<text x="{x:g}" y="{y:g}" fill="{fill}" {more}>{escape(words)}</text>'


def cells(line: str) -> int:
    """Return the number of terminal columns of a line."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@contextlib.contextmanager
def beside_documents() -> Iterator[None]:
    """Work in a folder that has the example's PDF and DOCX in ``docs``."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(REPO / "examples" / "files", Path(folder) / "docs")
        os.chdir(folder)
        os.environ["COLUMNS"] = "92"
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS")
            if columns is not None:
                os.environ["COLUMNS"] = columns


def terminal() -> str:
    """Run :data:`COMMANDS`, and return the output as a terminal shows it."""
    lines = []
    with beside_documents():
        for command in COMMANDS:
            ran = CliRunner().invoke(app, command.split()[1:])
            lines += [f"$ {command}", *ran.stdout.rstrip().splitlines(), ""]
    parts = [f'<circle cx="{20 + 18 * i}" cy="18" r="5" fill="#52606d"/>' for i in range(3)]
    for number, line in enumerate(lines[:-1]):
        more = f'xml:space="preserve" textLength="{cells(line) * 8.2:.1f}"'
        if line:
            color = "#7bdff2" if line.startswith("$") else "#e4e7eb"
            parts.append(text(18, 52 + 21 * number, line, color, more))
    body = f'<g font-family="{MONO}" font-size="13.5">' + "\n".join(parts) + "</g>"
    alt = "nodekin in a terminal: a PDF and a DOCX are indexed, and searched in two languages"
    return svg(800, 52 + 21 * len(lines), [body], alt, "#1f2933")


def graph_picture() -> str:
    """Build, search and draw a graph."""
    with NodeGraph(progress=False) as graph:
        graph.add(
            Document(
                "Green tea is not oxidized. The leaves are heated soon after picking.\n\n"
                "Black tea is oxidized. The leaves are rolled first.",
                id="tea.md",
            )
        )
        graph.create_node_group("paragraph", split_paragraphs)
        graph.create_node_group("sentence", split_sentences, parent="paragraph")
        question = "What happens to the leaves after picking?"
        (best,) = Retriever(graph, "sentence", target="paragraph", top_k=1)(question)
        hit = best.evidence[0].node
        paragraphs, sentences = graph.nodes("paragraph"), graph.nodes("sentence")
        places = {node.id: (30 + 185 * i, 226.0) for i, node in enumerate(sentences)}
        places |= {node.id: (122 + 370 * i, 126.0) for i, node in enumerate(paragraphs)}
        places["tea.md"] = (307, 26)
        parts = [
            text(785, 50, "documents"),
            text(785, 150, "paragraphs: returned"),
            text(785, 250, "sentences: searched"),
            text(30, 320, f"“{question}” matches the marked sentence; its paragraph is returned."),
        ]
        for node in (*paragraphs, *sentences):
            assert node.parent is not None
            (x, y), (up, above) = places[node.id], places[node.parent.id]
            strong = node.id == hit.id
            line = f'stroke="{OURS if strong else PEERS}" stroke-width="{3 if strong else 1.5}"'
            parts.append(
                f'<path d="M{x + 82:g} {y:g}L{up + 82:g} {above + 46:g}" fill="none" {line}/>'
            )
        for node in (graph.node("tea.md"), *paragraphs, *sentences):
            x, y = places[node.id]
            strong = node.id in (hit.id, best.node.id)
            fill, ink = (OURS, "#fff") if strong else ("#f0f4f8", INK)
            shape = f'width="165" height="46" rx="6" fill="{fill}" stroke="{PEERS}"'
            parts.append(f'<rect x="{x:g}" y="{y:g}" {shape}/>')
            words = node.id if node.id == "tea.md" else " ".join(node.text.split())
            for row, line in enumerate(_two_lines(words)):
                parts.append(text(x + 9, y + 19 + 18 * row, line, ink, 'font-size="12"'))
    return svg(940, 340, parts, "A document, its paragraphs and its sentences")


def _two_lines(words: str, width: int = 24) -> list[str]:
    if len(words) <= width:
        return [words]
    cut = words.rfind(" ", 0, width)
    rest = words[cut + 1 :]
    return [words[:cut], rest if len(rest) <= width else rest[: width - 1] + "…"]


PICTURES = {"graph": graph_picture, "terminal": terminal}


def main(folder: Path) -> None:
    """Write all pictures to a folder."""
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
