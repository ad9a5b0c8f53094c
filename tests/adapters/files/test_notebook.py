"""Notebooks."""

import json
from pathlib import Path

from nodekin.nodegraph import NodeGraph


def text_in(path: Path) -> str:
    (node,) = NodeGraph(path, progress=False).nodes("ROOT")
    return node.text


def test_notebook_is_read_as_text_and_code(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "About it."]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [{"text": ["1\n"]}, {"data": {"text/plain": "2", "image/png": "xx"}}],
        },
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    assert text_in(tmp_path / "a.ipynb") == (
        "# Tea\nAbout it.\n\n\f\n\n```python\nprint(1)\n```\n\n```\n1\n2\n```"
    )


def test_outputs_are_read_without_escape_codes(tmp_path: Path) -> None:
    traceback = ["\x1b[0;31mValueError\x1b[0m", "\x1b]8;;x\x07no tea\x1b]8;;\x07"]
    outputs = [
        {"output_type": "error", "ename": "ValueError", "evalue": "no tea", "traceback": traceback},
        {"data": {"text/html": "<b>bold</b> tea"}},
        {"data": {"image/png": "xx"}},
        {"text": "long " * 1000},
    ]
    cells = [
        {"cell_type": "markdown", "source": "Tea.", "attachments": {"a.png": {}}},
        {"cell_type": "code", "source": "", "outputs": outputs},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    graph = NodeGraph(tmp_path, progress=False)
    (node,) = graph.nodes("ROOT")
    assert "```\nValueError\nno tea\nbold tea\nlong " in node.text
    (note,) = graph.read_report.notes.values()
    for part in ("pictures left out: 1 (first: cell 1)", "outputs of type image/png left out: 1"):
        assert part in note
    assert "outputs cut after 2,000 characters: 1 (first: cell 2)" in note
