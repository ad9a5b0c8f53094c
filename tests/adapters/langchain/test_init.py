import subprocess
import sys

WITHOUT = """
import sys
sys.modules["langchain_core"] = None
try:
    import nodekin.adapters.langchain
except ImportError as error:
    print(error)
"""


def test_import_without_langchain_names_the_extra():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert 'pip install "nodekin[langchain]"' in run.stdout


def test_import_loads_only_langchain_core():
    code = "import sys, nodekin.adapters.langchain as a; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.split(".")[0] for name in run.stdout.split()}
    assert "langchain_core" in packages
    assert not packages & {"langchain", "langchain_classic", "langchain_community", "llama_index"}
    assert "langchain_text_splitters" not in packages
