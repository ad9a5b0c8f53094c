"""Run LangChain's own component tests with nodekin classes.

    python tests/support/langchain_suites.py [FOLDER]

The tests are part of the source distributions of the installed versions of langchain-core and
langchain-classic. These are read from FOLDER or downloaded with pip. The tests require pytest-mock.
The exit status is 0 if all failures are explained in ``DIFFERENCES`` and in docs/langchain.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

SUITES = {
    "langchain-core": [
        "vectorstores/test_in_memory.py",
        "indexing/test_indexing.py",
    ],
    "langchain-classic": [
        "retrievers/test_ensemble.py",
        "retrievers/test_multi_vector.py",
        "retrievers/test_parent_document.py",
        "retrievers/self_query/test_base.py",
        "chains/test_retrieval.py",
        "chains/test_history_aware_retriever.py",
        "chains/test_conversation_retrieval.py",
    ],
}

_FUNCTION = "a filter is a mapping, not a function"
DIFFERENCES = {
    "test_inmemory_mmr": "a text that is added twice without ids is one document",
    "test_inmemory_filter": _FUNCTION,
    "test_inmemory_filter_by_document_id": _FUNCTION,
    "test_inmemory_dump_load": "a graph is kept by store=, not by dump and load",
    "test_inmemory_upsert": "the test reads texts in the store's own dictionary",
    "test_inmemory_call_embeddings_async": "a text is given instead of a list of texts",
    "test_ensemble.py::test_invoke": "documents of one text and other metadata are two",
}
"""The reasons for expected failures, keyed by the last part of the name of the test."""

# If nodekin calls a deprecated function of LangChain, the test fails.
_SETTINGS = """[pytest]
asyncio_mode = auto
filterwarnings = error::DeprecationWarning:nodekin.*
"""


# The pytest plugin


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Replace LangChain's classes in the test modules."""
    for module in {item.module for item in items}:
        for name, make in _stand_ins().items():
            if hasattr(module, name):
                setattr(module, name, make(getattr(module, name)))


def _stand_ins() -> dict[str, Any]:
    from langchain_core.retrievers import RetrieverLike

    from nodekin.adapters.langchain import NodeGraphRetriever, NodeGraphVectorStore
    from nodekin.retrievers import FusionRetriever

    class VectorStore(NodeGraphVectorStore):
        @property
        def store(self) -> dict[str, Any]:
            return {node.id: node for node in self.graph.nodes("ROOT")}

    def ensemble(retrievers: list[RetrieverLike], weights: list[float], id_key: str | None) -> Any:
        fusion = FusionRetriever(retrievers, weights=weights, merge_by=id_key)
        return NodeGraphRetriever(fusion, score_key=None)

    def held(theirs: Any) -> Any:
        return lambda **fields: NodeGraphRetriever(theirs(**fields), score_key=None)

    return {
        "InMemoryVectorStore": lambda theirs: VectorStore,
        "EnsembleRetriever": lambda theirs: ensemble,
        "FakeParrotRetriever": held,
        "SequentialRetriever": held,
    }


# The program


def run(distribution: str, files: list[str], folder: Path) -> dict[str, str]:
    """Run the tests of a distribution, and return a dictionary with the outcome of each test."""
    name = f"{distribution.replace('-', '_')}-{version(distribution)}"
    archive = folder / f"{name}.tar.gz"
    if not archive.exists():
        fetch = ["download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder)]
        named = f"{distribution}=={version(distribution)}"
        subprocess.run([sys.executable, "-m", "pip", *fetch, named], check=True)
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        source = Path(unpacked, name)
        settings = source / "pytest.ini"
        settings.write_text(_SETTINGS, "utf-8")
        tests = [f"tests/unit_tests/{file}" for file in files]
        pytest = [sys.executable, "-m", "pytest", "-c", str(settings)]
        plugin = ["-p", "support.langchain_suites", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*pytest, *plugin, "-q", "-rA", "--tb=no", *tests],
            cwd=source,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) tests/unit_tests/(\S+)", done.stdout, re.M)
    if not outcomes:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return {test: outcome for outcome, test in outcomes}


def _is(test: str, end: str) -> bool:
    return test.endswith((f"/{end}", f"::{end}"))


def main() -> int:
    with tempfile.TemporaryDirectory() as fetched:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else fetched).resolve()
        unexplained = 0
        for distribution, files in SUITES.items():
            outcomes = run(distribution, files, folder)
            passed = sum(outcome == "PASSED" for outcome in outcomes.values())
            print(f"{distribution} {version(distribution)}: {passed} of {len(outcomes)} pass")
            for test, outcome in outcomes.items():
                why = next((why for end, why in DIFFERENCES.items() if _is(test, end)), None)
                if outcome != "PASSED":
                    print(f"  {test}: {why or 'NOT EXPLAINED'}")
                elif why:
                    print(f"  {test}: passes, and is said not to")
                unexplained += (outcome == "PASSED") == (why is not None)
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
