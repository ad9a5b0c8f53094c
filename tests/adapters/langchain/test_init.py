import subprocess
import sys


def test_import_loads_only_langchain_core():
    code = "import sys, nodekin.adapters.langchain as a; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name.split(".")[0] for name in run.stdout.split()}
    assert "langchain_core" in packages
    assert not packages & {"langchain", "langchain_classic", "langchain_community", "llama_index"}
    assert "langchain_text_splitters" not in packages
