"""The package ``llama-index-retrievers-nodekin``: its own tests and its notebook."""

import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import llama_index
import pytest

PACKAGE = Path(__file__).parents[3] / "packaging" / "llama-index-retrievers-nodekin"

# The files of LlamaIndex's integration packages.
TEMPLATE = """\
LICENSE Makefile README.md pyproject.toml examples/nodekin_retriever.ipynb tests/__init__.py
llama_index/retrievers/nodekin/__init__.py llama_index/retrievers/nodekin/py.typed
tests/unit_tests/test_retrievers_nodekin.py
tests/integration_tests/test_nodekin_in_llama_index.py"""


@pytest.mark.parametrize("name", TEMPLATE.split())
def test_package_has_the_files_of_the_template(name: str) -> None:
    assert (PACKAGE / name).exists()


def test_project_has_urls_and_classifiers() -> None:
    text = (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'\[project\.urls\].*\nHomepage = "https://', text)
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        assert f'"Programming Language :: Python :: {version}"' in text


def test_notebook_prints_its_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        llama_index, "__path__", [*llama_index.__path__, str(PACKAGE / "llama_index")]
    )
    importlib.invalidate_caches()
    path = PACKAGE / "examples" / "nodekin_retriever.ipynb"
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), names)
            expected = "".join("".join(output["text"]) for output in cell["outputs"])
            assert printed.getvalue() == expected


@pytest.mark.slow
def test_package_passes_its_own_tests() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
