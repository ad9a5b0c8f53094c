import subprocess
import sys

import pytest

BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "llama_index" or name.startswith("llama_index."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import nodekin.adapters
import nodekin.adapters.llama_index
"""
QUIET = """
import sys
from nodekin.adapters.llama_index import NodeGraphRetriever
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
from llama_index.core import Settings
graph = NodeGraph()
graph.add("Tea is a drink.")
retriever = NodeGraphRetriever(Retriever(graph, "FineChunk"))
assert retriever.retrieve("tea")
assert Settings._llm is None and Settings._embed_model is None
assert not [m for m in sys.modules if m.split(".")[0] in ("openai", "torch", "langchain_core")]
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def test_missing_framework_says_what_to_install() -> None:
    done = run(BLOCKED)
    assert done.returncode == 1
    assert (
        'ImportError: llama_index is not installed; get it with: pip install "nodekin[llama-index]"'
        in (done.stderr)
    )


def test_no_model_is_ever_resolved() -> None:
    done = run(QUIET)
    assert done.returncode == 0, done.stderr


def test_public_names() -> None:
    import nodekin.adapters.llama_index as face

    for name in face.__all__:
        assert getattr(face, name).__doc__, name
    with pytest.raises(AttributeError):
        face.nothing  # noqa: B018
