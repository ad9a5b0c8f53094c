"""The house keeps its own rules: rooms, package list, public names, light imports."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).parents[1]
ROOMS = ("nodegraph", "retrievers", "adapters")
FRAMEWORKS = {
    *("langchain", "langchain_core", "langchain_text_splitters", "langchain_community"),
    *("llama_index", "openai", "sentence_transformers", "torch", "transformers", "pymilvus"),
    *("chromadb", "opensearchpy", "ray", "pandas", "jieba", "pydantic"),
}

CLIENTS = {"pymilvus", "chromadb", "opensearchpy"}  # of engines, in nodegraph/engines


def _imports(path: Path) -> set[tuple[int, str]]:
    """Return the level and the dotted name of everything a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(0, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                found.add((node.level, node.module))
            else:
                found |= {(node.level, alias.name) for alias in node.names}
    return found


def _rooms_used(path: Path) -> set[str]:
    """Return the rooms that a file imports from, besides its own."""
    depth = len(path.relative_to(REPO).parts)
    used = set()
    for level, module in _imports(path):
        first = module.split(".")[0]
        if level == depth and first in ROOMS:
            used.add(first)
        if level == 0 and first == "nodekin":
            pytest.fail(f"{path} imports {module} by its full name; inside, import relatively")
    return used


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    allowed = set(ROOMS[: ROOMS.index(room)])
    for path in (REPO / room).rglob("*.py"):
        assert _rooms_used(path) <= allowed, path


def test_import_check_sees_an_import_of_another_room() -> None:
    assert _rooms_used(REPO / "retrievers" / "retriever.py") == {"nodegraph"}


def test_only_adapters_import_frameworks() -> None:
    for room in ("nodegraph", "retrievers"):
        for path in (REPO / room).rglob("*.py"):
            named = {module.split(".")[0] for level, module in _imports(path) if level == 0}
            allowed = CLIENTS if path.parent.name == "engines" else set()
            assert not named & (FRAMEWORKS - allowed), path


def test_package_list_is_what_is_on_disk() -> None:
    config = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    listed = config["tool"]["setuptools"]["packages"]
    on_disk = {
        "nodekin." + ".".join(path.parent.relative_to(REPO).parts)
        for room in ROOMS
        for path in (REPO / room).rglob("__init__.py")
    }
    assert sorted(listed) == sorted(on_disk | {"nodekin"})


def test_files_that_are_no_code_are_in_the_package() -> None:
    config = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    listed = config["tool"]["setuptools"]["package-data"]
    on_disk: dict[str, list[str]] = {}
    for room in ROOMS:
        for path in (REPO / room).rglob("*.*"):
            if "__pycache__" in path.parts:  # numba keeps what it compiles there
                continue
            if path.suffix != ".py" and path.name != "py.typed":
                package = ".".join(("nodekin", *path.parent.relative_to(REPO).parts))
                on_disk.setdefault(package, []).append(path.name)
    assert {name: sorted(files) for name, files in on_disk.items()} == {
        name: sorted(files) for name, files in listed.items() if name != "*"
    }


def test_no_folder_shadows_the_namespace() -> None:
    assert not (REPO / "nodekin").exists()
    assert not (REPO / "__init__.py").exists()


@pytest.mark.parametrize("room", ROOMS)
def test_type_checkers_find_each_room(room: str) -> None:
    link = REPO / ".typing" / "nodekin" / room
    assert link.is_symlink()
    assert link.resolve() == (REPO / room).resolve()
    assert (REPO / room / "py.typed").exists()


PUBLIC = {
    "nodekin.nodegraph": """
        CORPUS CachedLLM Changes Derivation Document Embedder EmbeddingError EntityExtractor Failure
        Family GroupSummary Kin LLM LLMExtractor Link LinkedText MarkdownSplitter MemoryStore
        ModelError ModelTimeoutError Nearest Node NodeGraph NodeGroup NodeStore
        Observation OutsideHoldError PassageSplitter ProcessWorkers ROOT ReadError ReadOptions
        ReadReport RecursiveSplitter
        Refresh SearchText SearchTextOption SentenceSplitter Stamp StoreError
        TableAheadError TableState
        TransformError TransientStoreError UnknownGroupError UnsupportedFilesError
        ValueMatch VectorRow VectorTable Workers
        as_search_text count_tokens declared_search_text does_without_tables fingerprint
        explain_names
        file_name_of headings_of markdown_headings source_title
        limit_concurrency nearest_names observing register_reader run_in_tasks run_in_threads
        split_paragraphs split_sentences store_options track without_tables
    """,
    "nodekin.nodegraph.engines": """
        EngineRow EngineUnavailableError EngineVectors EngineWords IndexEngine
        MissingCollectionError NodeTerms QueryTerm REFERENCE_B REFERENCE_K1 TermFrequency
        WordCandidates WordEngine WordHits WordRow WordTotals WordedNode as_engine delete_unused
        drop_outdated searches_words
    """,
    "nodekin.nodegraph.postgres": "PostgresAddress PostgresStore",
    "nodekin.nodegraph.sqlite": "SQLiteStore",
    "nodekin.retrievers": """
        Answer AutoMergeRetriever BaseRetriever Bm25 DefaultRetriever
        CorpusTools DocumentCompletionRetriever Conversation Cosine
        Evidence Filter Filters
        FusionRetriever HyDERetriever KeywordFilter LinkOptions LinkRetriever
        MultiQueryRetriever MultiStepRetriever NearDuplicateFilter Prompt QaRetriever
        QueryEngine QueryRewriteRetriever RecursiveRetriever RerankRetriever Reranker
        RestrictedRetriever Retriever RetrieverLike RetrieverProtocol
        RouterRetriever ScoredNode Span SubQuestionRetriever TextAnalyzer TokenLimit
        ToolError ToolOutput ToolQuestionRetriever ToolSession WindowRetriever
        all_of as_retriever child_k_override
        get_similarity lifted_score limit_concurrency metadata_key observe parse_filters
        register_index register_reranker
        register_similarity restrict trace with_weights
    """,
    "nodekin.retrievers.evaluation": """
        Dataset Difference Evaluation Figure GeneratedQuestions GoldDocument GoldPassage GoldSpan
        JUDGED_METRICS Judge Judgement METRICS
        Matching Metric MissingGold NoQuestionsError Question RejectedQuestion RetrievalCase
        RetrievedItem
        default_metrics edit_similarity evaluate generate_questions get_metric
        load_beir load_csv load_dataset load_jsonl load_langchain load_llama_index load_ragas
        load_log load_squad save_jsonl
    """,
    "nodekin.adapters": "",
    "nodekin.adapters.cli": "main",
    "nodekin.adapters.langchain": """
        corpus_toolkit
        FileLoader FilterField
        GraphEmbeddings NodeGraphIndex NodeGraphQueryEngine NodeGraphReranker NodeGraphRetriever
        NodeGraphStore NodeGraphVectorStore NodeTextSplitter StructuredFilter answer_tool
        as_embedder as_index as_llm as_retriever as_transform decompose_query expand_query
        from_document fuse_documents hypothesize retriever_tool rewrite_query route_query
        to_document transform_query
    """,
    "nodekin.adapters.llama_index": """
        corpus_toolkit
        FileReader ImportResult LiftPostprocessor NodeGraphAutoRetriever NodeGraphDocstore
        NodeGraphIndex NodeGraphQueryEngine
        NodeGraphQueryTransform NodeGraphQuestionGenerator NodeGraphReranker NodeGraphRetriever
        NodeGraphTransform NodeWithEvidence SpanEndEvent SpanObserver SpanStartEvent
        as_embedder as_index as_llm as_retriever as_transform dump_nodes export_index_nodes
        export_nodes from_text_node import_nodes load_nodes to_node_with_score to_text_node
    """,
}


# What users type beyond that, by sub-package or module; their faces have more.
PUBLIC_BELOW = {
    "nodekin.nodegraph.models": "Embedder LLM CachedLLM as_embedder as_llm",
    "nodekin.retrievers.answers": """
        Answer AnswerError AnswerOptions AnswerStream AsyncAnswerStream Conversation OmittedResult
        PROMPTS PresetAnswer QaRetriever QueryEngine Source
    """,
    "nodekin.retrievers.indexes": """
        Exact NodeTable Saturation SyncedIndex TermWeights TextIndex VectorIndex WordIndex
    """,
    "nodekin.retrievers.evaluation.setups": "RETRIEVERS SetupFile SetupOpener TRANSFORMS",
    "nodekin.retrievers.evaluation.tuning": "Choice FEWEST_QUESTIONS Space Trial Tuning tune",
    "nodekin.adapters.serve": "PageApp TriedSetups",
    "nodekin.adapters.evaluation": "load_setup open_graph",
    "nodekin.retrievers.testing": "check_index check_retriever",
    "nodekin.retrievers.plans": "Ask Each Effect Find Plan Prompt arun astream run stream",
    "nodekin.retrievers.protocols": """
        Index RerankError RerankerProtocol RetrieverProtocol Similarity
    """,
    "nodekin.retrievers.ranking": "fuse",
    "nodekin.retrievers.rerankers": "CrossEncoderReranker KeywordFilter passage_windows",
    "nodekin.retrievers.results": "Evidence Hits QueryVariant ScoredNode",
    "nodekin.retrievers.similarities": "Bm25 Cosine CustomSimilarity get_similarity",
    "nodekin.retrievers.strategies": """
        AnsweredJudge HyDE HyDERetriever MultiQueryRetriever MultiStep MultiStepRetriever
        NextQuestion PlannedRetriever QueryDecomposition QueryExpansion QueryRewrite
        QueryRewriteRetriever QueryRouter QueryTransform QueryVariants RouterRetriever Step
        StepAnswer StepReader StepRoles Strategy SubQuestionRetriever SubResults TransformRetriever
        make_strategy make_transform simple_strategies STRATEGIES
    """,
    "nodekin.retrievers.tracing": "Observer Span observe start_span trace",
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names(module: str) -> None:
    imported = importlib.import_module(module)
    assert sorted(getattr(imported, "__all__", [])) == sorted(PUBLIC[module].split())
    for name in PUBLIC[module].split():
        assert hasattr(imported, name)


@pytest.mark.parametrize("module", PUBLIC_BELOW)
def test_public_names_below(module: str) -> None:
    imported = importlib.import_module(module)
    assert set(PUBLIC_BELOW[module].split()) <= set(dir(imported))
    for name in PUBLIC_BELOW[module].split():
        assert hasattr(imported, name)


def test_no_two_public_names_differ_in_case_only() -> None:
    for names in map(str.split, PUBLIC.values()):
        assert len({name.casefold() for name in names}) == len(names)


def _modules_of(statement: str) -> list[str]:
    """Return the modules that a statement loads in a fresh interpreter."""
    code = f"import sys, json; old = set(sys.modules); {statement}; "
    code += "print(json.dumps(sorted(set(sys.modules) - old)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout)
    return loaded


# What is imported when it is used: servers, databases, parsers of files and of models' answers.
_LATE = FRAMEWORKS | {
    *("asyncio", "http", "httpx", "jieba", "json_repair", "multiprocessing", "numba", "numpy"),
    *("pydantic", "scipy", "socket", "sqlite3", "ssl", "subprocess", "tqdm", "urllib.request"),
    *("nodekin.adapters", "nodekin.nodegraph.models.output", "nodekin.nodegraph.readers.formats"),
    *("nodekin.retrievers.answers", "nodekin.retrievers.evaluation", "nodekin.retrievers.indexes"),
    *("nodekin.retrievers.strategies", "nodekin.retrievers.evaluation.tuning"),
}


@pytest.mark.parametrize(
    ("statement", "most", "early"),
    [
        ("from nodekin.nodegraph import NodeGraph", 55, set()),
        ("from nodekin import NodeGraph, Retriever", 85, {"numpy"}),
        # Plans of several steps also run in event loops.
        (
            "from nodekin import NodeGraph, Retriever, as_retriever",
            115,
            {"numpy", "asyncio", "socket", "ssl", "subprocess"},
        ),
    ],
)
def test_what_most_programs_import_is_light(statement: str, most: int, early: set[str]) -> None:
    loaded = _modules_of(statement)
    assert {name for name in loaded if {name, name.split(".")[0]} & _LATE} <= {
        name for name in loaded if name.split(".")[0] in early
    }
    assert len([name for name in loaded if name.startswith("nodekin.")]) <= most


def test_retrievers_need_no_framework() -> None:
    loaded = _modules_of("from nodekin.retrievers import *")
    assert not {name.split(".")[0] for name in loaded} & FRAMEWORKS
    assert not [name for name in loaded if name.startswith("nodekin.retrievers.evaluation")]


@pytest.mark.parametrize("framework", ["langchain", "llama_index", "openai"])
def test_a_missing_extra_says_what_to_install(framework: str) -> None:
    core = {"langchain": "langchain_core", "llama_index": "llama_index.core"}.get(
        framework, framework
    )
    code = f"""
import sys
sys.modules[{core!r}] = None
try:
    import nodekin.adapters.{framework}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f'pip install "nodekin[{framework.replace("_", "-")}]"' in done.stdout
