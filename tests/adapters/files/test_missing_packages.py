"""Each optional package of the file readers is missing in turn: nothing is silent or breaks."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.sample_files import sample_files

OFFICE_97 = Path(__file__).parents[2] / "support" / "office97"

FILES = 'pip install "nodekin[files]"'
LEGACY = 'pip install "nodekin[legacy]"'

PROGRAM = """
import json, logging
from nodekin import NodeGraph

lines = []

class Keep(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())

logging.getLogger("nodekin").addHandler(Keep())
graph = NodeGraph("docs", progress=False)
results = [bool(graph.search(query, top_k=1)) for query in ("drink", "tea")]
files = [
    [failure.document.rpartition("/")[2], failure.error.kind, str(failure.error)]
    for failure in graph.failures
]
read = [node.metadata["file_name"] for node in graph.nodes("ROOT")]
print(json.dumps({"lines": lines, "files": files, "read": read, "results": results}))
"""

PACKAGES = {
    "pypdfium2": (FILES, {".pdf"}),
    "anydoc": (FILES, {".docx", ".odt", ".pptx", ".rtf", ".xlsx", ".xls", ".doc", ".ppt"}),
    "html_to_markdown": (FILES, {".html", ".epub", ".eml", ".mbox", ".doc", ".ppt"}),
    "python_calamine": (FILES, {".xlsx", ".xls"}),
    "office_oxide": (LEGACY, {".doc", ".ppt"}),
    "tree_sitter": (FILES, set()),
    "tree_sitter_python": (FILES, set()),
    "PIL": (FILES, set()),
    "watchfiles": (FILES, set()),
    "pytesseract": ("", set()),
}
"""The install command by module, and the suffixes of files that may need the module."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    names = {file.name for file in sample_files(folder / "docs")}
    if find_spec("office_oxide"):
        for file in OFFICE_97.iterdir():
            shutil.copy(file, folder / "docs")
            names.add(file.name)
    expected = 21 if find_spec("office_oxide") else 19  # .doc and .ppt need office-oxide
    assert len({Path(name).suffix for name in names}) >= expected
    return folder


@pytest.mark.parametrize("module", PACKAGES)
def test_missing_package_is_named_for_each_file(folder: Path, module: str) -> None:
    if module == "office_oxide":
        pytest.importorskip(module, reason=f"needs: {LEGACY}")
    install, suffixes = PACKAGES[module]
    # Workers inherit the block, since they import modules by the same path.
    blocked = folder / f"blocked-{module}"
    blocked.mkdir(exist_ok=True)
    missing = f"raise ModuleNotFoundError(\"No module named '{module}'\", name='{module}')\n"
    (blocked / f"{module}.py").write_text(missing)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(blocked)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    docs = {file.name for file in (folder / "docs").iterdir()}
    skipped = {name for name, _, _ in said["files"]}
    assert skipped | set(said["read"]) == docs
    assert all(said["results"])
    for name, kind, reason in said["files"]:
        assert Path(name).suffix in suffixes
        assert kind == f"in need of {install}"
        assert install in reason
    if suffixes:
        assert {Path(name).suffix for name in skipped} == suffixes & {Path(n).suffix for n in docs}
        (line,) = [line for line in said["lines"] if "skipped" in line]
        assert line.startswith(f"{len(skipped)} file")
        assert install in line
    else:
        assert not skipped
