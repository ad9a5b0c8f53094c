import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

import nodekin.adapters.langchain as adapter

WITHOUT = """
import sys
sys.modules["langchain_core"] = None
try:
    import nodekin.adapters.langchain
except ImportError as error:
    print(error)
"""


def test_the_public_names_are_there():
    assert all(hasattr(adapter, name) for name in adapter.__all__)
    assert not hasattr(adapter, "NodeGraphRetreiver")


def test_options_are_typed():
    """A type checker flags ``k="3"`` and ``kk=3`` where classes are made."""
    for name in adapter.__all__:
        thing = getattr(adapter, name)
        makers = [call for key, call in vars(thing).items() if key.startswith("from_")]
        for call in (thing, *(getattr(call, "__func__", call) for call in makers)):
            for parameter in signature(call).parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD:
                    assert "Unpack[" in str(parameter.annotation), (name, call)


def test_without_langchain_the_error_says_what_to_install():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert 'pip install "nodekin[langchain]"' in run.stdout


def test_only_langchain_core_is_needed():
    code = "import sys, nodekin.adapters.langchain as a; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.split(".")[0] for name in run.stdout.split()}
    assert "langchain_core" in packages
    assert not packages & {"langchain", "langchain_classic", "langchain_community", "llama_index"}
    assert "langchain_text_splitters" not in packages


@pytest.mark.slow
def test_all_names_are_imported_and_completed_without_text_splitters():
    code = """
import sys
sys.modules["langchain_text_splitters"] = None
sys.path.append("packaging/langchain-nodekin")
for module in ("nodekin.adapters.langchain", "langchain_nodekin"):
    scope = {}
    exec(f"from {module} import *", scope)
    names = {name for name in scope if not name.startswith("_")}
    assert {"NodeGraphRetriever", "FileLoader"} <= names <= set(dir(sys.modules[module])), names
    assert "NodeTextSplitter" not in names
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
