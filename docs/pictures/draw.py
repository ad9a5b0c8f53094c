"""Draw the pictures of the README from a real run.

``python docs/pictures/draw.py`` writes them to this folder; a test compares them. The answer of the
language model is written below, and a server on loopback sends it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
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
    "nodekin search 谁付运费 -k 1",
    'nodekin ask "Who pays the freight?"',
)
CHINESE_COMMANDS = (
    "nodekin index docs",
    "nodekin search 绿茶用多少度的水 -k 1",
    "nodekin ask 谁付运费",
)
ANSWER = "The garden pays the freight [1]."
CHINESE_ANSWER = "运费由茶园承担 [1]。"
PAUSE = 0.7
"""Seconds before a command is typed."""
SECONDS_PER_CHARACTER = 0.05
READING = 3.5
"""Seconds after the output of a command."""
COLUMN = 8.2
"""The width of a character in a terminal."""


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
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def beside_documents() -> Iterator[None]:
    """Work in a folder that has the example's PDF and DOCX in ``docs``."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, variables({"COLUMNS": "92"}):
        shutil.copytree(REPO / "examples" / "files", Path(folder) / "docs")
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def answering_model(answer: str) -> Iterator[None]:
    """Serve a model that gives this answer."""
    sys.path.append(str(REPO / "tests"))
    from support.scripted_server import ChatServer, serving

    with serving(ChatServer()) as server:
        server.text = answer
        with variables({"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "qwen3:4b"}):
            yield


def outputs(commands: Sequence[str], answer: str, locale: str) -> dict[str, list[str]]:
    """Run commands in a locale, and return the lines that each prints."""
    lines = {}
    with beside_documents(), answering_model(answer), variables({"LC_ALL": locale}):
        for command in commands:
            ran = CliRunner().invoke(app, shlex.split(command)[1:])
            lines[command] = ran.stdout.strip().splitlines()
    return lines


def terminal() -> str:
    """Return :data:`COMMANDS` and their output as an animated terminal."""
    alt = "nodekin in a terminal: a PDF and a DOCX are indexed and searched, and a model answers"
    return animated(outputs(COMMANDS, ANSWER, "C.UTF-8"), alt)


def chinese_terminal() -> str:
    """Return :data:`CHINESE_COMMANDS` and their output in Chinese as an animated terminal."""
    alt = "终端里的 nodekin：为 PDF 和 DOCX 建索引，搜索，由大模型回答"
    return animated(outputs(CHINESE_COMMANDS, CHINESE_ANSWER, "zh_CN.UTF-8"), alt)


def animated(printed: Mapping[str, Sequence[str]], alt: str) -> str:
    """Return commands and the lines that they print as an animated terminal.

    The commands are typed one after the other. Programs without animations show the last state.
    """
    seconds = {command: SECONDS_PER_CHARACTER * len(command) for command in printed}
    total = sum(seconds.values()) + len(printed) * (PAUSE + READING)
    parts = [f'<circle cx="{20 + 18 * i}" cy="18" r="5" fill="#52606d"/>' for i in range(3)]
    begin = 0.0
    y = 52
    for number, (command, lines) in enumerate(printed.items()):
        begin += PAUSE
        end = begin + seconds[command]
        typed = _typed(f"$ {command}", number, y, begin / total, end / total, total)
        parts.append(typed)
        shown = []
        for line in lines:
            y += 21
            if line:
                shown.append(_terminal_line(y, line, "#e4e7eb"))
        parts.append(_appearing("".join(shown), end / total, total))
        begin = end + READING
        y += 42
    body = f'<g font-family="{MONO}" font-size="13.5">' + "\n".join(parts) + "</g>"
    return svg(800, y - 21, [body], alt, "#1f2933")


def _terminal_line(y: float, line: str, color: str) -> str:
    """Return a line of a terminal."""
    more = f'xml:space="preserve" textLength="{cells(line) * COLUMN:.1f}"'
    return text(18, y, line, color, more)


def _appearing(body: str, moment: float, total: float) -> str:
    """Return parts that appear at a moment (0 to 1) of each turn of the animation."""
    animation = (
        f'<animate attributeName="opacity" calcMode="discrete" values="0;1" '
        f'keyTimes="0;{moment:.4f}" dur="{total:g}s" repeatCount="indefinite"/>'
    )
    return f"<g>{animation}{body}</g>"


def _typed(line: str, number: int, y: float, begin: float, end: float, total: float) -> str:
    """Return a line that is uncovered from left to right between two moments."""
    width = 40 + COLUMN * cells(line)
    animation = (
        f'<animate attributeName="width" values="0;0;{width:g};{width:g}" '
        f'keyTimes="0;{begin:.4f};{end:.4f};1" dur="{total:g}s" repeatCount="indefinite"/>'
    )
    window = f'<rect y="{y - 18:g}" width="800" height="26">{animation}</rect>'
    clip = f'<clipPath id="typed{number}">{window}</clipPath>'
    shown = _terminal_line(y, line, "#7bdff2")
    return f'{clip}<g clip-path="url(#typed{number})">{shown}</g>'


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


PICTURES = {"graph": graph_picture, "terminal": terminal, "terminal.zh": chinese_terminal}


def main(folder: Path) -> None:
    """Write all pictures to a folder."""
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
