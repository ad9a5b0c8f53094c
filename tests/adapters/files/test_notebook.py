"""Notebooks."""

import json
from pathlib import Path

from nodekin.nodegraph import NodeGraph


def test_cells_are_pages_with_code_and_short_outputs(tmp_path: Path) -> None:
    traceback = ["\x1b[0;31mKeyError\x1b[0m", "\x1b]8;;x\x07tea\x1b]8;;\x07"]
    outputs = [
        {"text": ["1\n"]},
        {"data": {"text/plain": "2"}},
        {"ename": "KeyError", "traceback": traceback},
        {"text": "long " * 1000},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "About it."]},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    graph = NodeGraph(tmp_path, progress=False)
    (node,) = graph.nodes("ROOT")
    page = "# Tea\nAbout it.\n\n\f\n\n```python\nprint(1)\n```\n\n```\n1\n2\nKeyError\ntea\nlong "
    assert node.text.startswith(page)
    assert node.text.endswith(" ...\n```")
    (note,) = graph.read_report.notes.values()
    assert "outputs cut after 2,000 characters: 1 (first: cell 2)" in note
