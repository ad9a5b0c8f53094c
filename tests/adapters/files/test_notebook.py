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
