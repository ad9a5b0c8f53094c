"""The fixtures of these suites, where LlamaIndex is installed."""

from importlib.util import find_spec

if find_spec("llama_index") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from support.llama_index_models import closed_memories  # noqa: F401
    from support.llama_index_suites import (  # noqa: F401
        documents,
        events,
        index,
        kind,
        llm,
        pytest_collection_modifyitems,
        settings,
    )
