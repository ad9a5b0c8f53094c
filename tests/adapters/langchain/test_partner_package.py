"""The package ``langchain-nodekin``: its own tests, notebook, and the files of the template."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "packaging" / "langchain-nodekin"

# The files of langchain-cli 0.0.37 for retrievers, vector stores, loaders and tools.
TEMPLATE = """\
LICENSE Makefile README.md pyproject.toml docs/retrievers.ipynb scripts/check_imports.py
langchain_nodekin/__init__.py langchain_nodekin/py.typed langchain_nodekin/retrievers.py
langchain_nodekin/vectorstores.py langchain_nodekin/document_loaders.py langchain_nodekin/tools.py
tests/__init__.py tests/unit_tests/__init__.py tests/unit_tests/test_tools.py
tests/integration_tests/__init__.py tests/integration_tests/test_compile.py
tests/integration_tests/test_retrievers.py tests/integration_tests/test_tools.py
tests/integration_tests/test_vectorstores.py"""


@pytest.mark.parametrize("name", TEMPLATE.split())
def test_package_has_the_files_of_the_template(name):
    assert (PACKAGE / name).exists()


def test_project_has_urls_and_classifiers():
    text = (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r'\[project\.urls\].*\nHomepage = "https://', text)
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        assert f'"Programming Language :: Python :: {version}"' in text


def test_notebook_prints_its_outputs(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    notebook = json.loads((PACKAGE / "docs" / "retrievers.ipynb").read_text(encoding="utf-8"))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), names)
            expected = "".join("".join(output["text"]) for output in cell["outputs"])
            assert printed.getvalue() == expected


@pytest.mark.slow
def test_package_passes_its_own_tests():
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    done = subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
