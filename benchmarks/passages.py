"""Measure whether the text that is passed to a model contains the answer.

Several ways to split documents and to search are compared. The questions written for this project
(``passage_questions.jsonl``, how-to questions and factual questions) are about a corpus of three
kinds of text: Python's reference, which is included in Python (``pydoc_data``), the guides of this
project (``corpus/pages``), and the Chinese paragraphs of CMRC 2018. The 1,002 questions of CMRC are
about its paragraphs.

The default retriever is also compared with its parts on all available data sets. The figure is the
MRR@10 of the paragraph that contains the answer (CMRC 2018, XQuAD), or the share of questions for
which all relevant passages are among the first five results (HotpotQA, MuSiQue). The "weak vectors"
are static English vectors from wordllama (``pip install wordllama``). "Weight" is their weight in
the default search, in which the words of passages have the weight 3 and the words of sentences have
the weight 1.

Finally, results within a token budget are compared: chunks of 400 tokens, passages, and windows.
The figure is the share of the answers' characters that are contained in the results, averaged over
all questions. The answers are the relevant excerpts of Chroma's five corpora, the answers in
XQuAD's articles, the supporting sentences of HotpotQA and the answers to the steps of MuSiQue. For
how-to questions, factual questions and CMRC, the figure is the number of questions whose complete
answer is contained in the results. Chunks and passages are the first results of BM25 and of the
default search that fit the budget. Windows are the results of the default search with
``max_tokens=``.
"""

from __future__ import annotations

import csv
import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, NamedTuple

import numpy as np
from harness import arguments, cmrc, cmrc_dev, compare, graph_of, multi_hop, show, xquad

from nodekin.nodegraph import (
    ROOT,
    Document,
    Embedder,
    EntityExtractor,
    MarkdownSplitter,
    NodeGraph,
    PassageSplitter,
    SentenceSplitter,
    count_tokens,
    split_paragraphs,
    split_sentences,
)
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    Retriever,
    ScoredNode,
    as_retriever,
    trace,
)
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldSpan,
    Judgment,
    Metric,
    Question,
    RetrievalCase,
)

HERE = Path(__file__).resolve().parent

CONTAIN_OTHERS = {"compound", "specialnames", "types"}  # topics whose texts include other topics

DEPTH, FUSED_DEPTH = 10, 50

TOP_K = 6  # number of passages that ``nodekin ask`` passes to a model


def whole_answer(case: RetrievalCase) -> Judgment:
    """Return whether a single result contains the complete answer.

    The position of the answer is used if it is known. Otherwise, the text is compared.
    """
    question = case.question
    if question.gold:
        (span,) = (gold for gold in question.gold if isinstance(gold, GoldSpan))
        places = (i for i in case.items if i.document_id == span.document_id and i.end is not None)
        found = any((i.start or 0) <= span.start and span.end <= (i.end or 0) for i in places)
    else:
        found = any(_plain(question.answers[0]) in _plain(item.text) for item in case.items)
    return Judgment(float(found))


WHOLE_ANSWER = Metric("whole answer", whole_answer)


def texts(data: Path) -> Iterator[Document]:
    """Yield the documents of the corpus. Missing files are reported and left out."""
    for name, text in topics.items():
        if name not in CONTAIN_OTHERS:
            yield Document(text, id=f"pydoc/{name}")
    for file in (HERE / "corpus" / "pages").glob("*.md"):
        yield Document(file.read_text(encoding="utf-8"), id=f"docs/{file.name}")
    folder = data / "cmrc2018"
    if not folder.is_dir():
        print(f"skipped: no CMRC 2018 in {folder}")
    for file in sorted(folder.glob("kb/*.txt")):
        yield Document(file.read_text(encoding="utf-8"), id=f"cmrc2018/{file.name}")


def own_questions(sources: Mapping[str, str]) -> dict[str, Dataset]:
    """Return the questions written for this project, keyed by kind.

    Questions whose answer is not contained in this version of Python's reference are left out.
    """
    lines = (HERE / "passage_questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    here = [row for row in rows if _plain(row["answer"]) in _plain(sources.get(row["source"], ""))]
    if len(here) < len(rows):
        number = len(rows) - len(here)
        print(f"skipped: {number} questions whose answer is not in the texts that are here")
    kinds: dict[str, list[Question]] = {"how-to": [], "fact": []}
    for number, row in enumerate(here):
        question = Question(str(number), row["question"], answers=(row["answer"],))
        kinds[row["kind"]].append(question)
    return {f"{kind}s": Dataset(questions, name=kind) for kind, questions in kinds.items()}


def cmrc_questions(data: Path, sources: Mapping[str, str]) -> Iterator[Question]:
    """Yield the questions of CMRC with the positions of their answers."""
    file = data / "cmrc2018" / "questions.jsonl"
    starts = {
        paragraph: (name, at)
        for name, text in sources.items()
        if name.startswith("cmrc2018/")
        for paragraph, at in _lines(text)
    }
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        record = json.loads(line)
        name, at = starts[record["context"].strip()]
        start, answer = at + record["answer_starts"][0], record["answers"][0]
        span = GoldSpan(name, start, start + len(answer), answer)
        yield Question(record["id"], record["question"], (span,), (answer,))


def _lines(text: str) -> Iterator[tuple[str, int]]:
    at = 0
    for line in text.split("\n"):
        yield line.strip(), at
        at += len(line) + 1


def _plain(text: str) -> str:
    return " ".join(text.split())


def set_ups(graph: NodeGraph, top_k: int) -> Iterator[tuple[str, Any]]:
    """Yield retrievers for each way to split documents and to search, with their names."""
    cuts: dict[str, Any] = {
        "paragraphs": split_paragraphs,
        "chunks of 256": SentenceSplitter(256, 25),
        "sections, parts of 256": MarkdownSplitter(chunk_size=256),
        "passages of 256": PassageSplitter(256),
        "passages of 320": PassageSplitter(),
        "passages of 384": PassageSplitter(384),
    }
    for name, cut in cuts.items():
        graph.create_node_group(name, cut)
        graph.create_node_group(f"{name}: sentences", split_sentences, name)
        whole = Retriever(graph, name, top_k=top_k)
        yield f"{name}, by words", whole
        if name.startswith("passages"):
            small = Retriever(graph, f"{name}: sentences", target=name, top_k=top_k)
            yield f"{name}, by the words of their sentences", small
            branches = [
                Retriever(graph, name, top_k=20),
                Retriever(graph, f"{name}: sentences", target=name, top_k=20),
            ]
            yield f"{name}, both fused", FusionRetriever(branches, mode="relative", top_k=top_k)
            yield f"{name}, the default in Python", DefaultRetriever(graph, name, top_k=top_k)


def datasets(data: Path) -> Iterator[tuple[Dataset, str]]:
    """Yield the available data sets, each with the name of its metric."""
    yield cmrc(data), "mrr@10"
    try:
        yield cmrc_dev(data), "mrr@10"
    except FileNotFoundError as error:
        print(f"\nskipped: no {error.filename}")
    for dataset in xquad(data):
        yield Dataset(dataset.questions, dataset.documents, f"XQuAD, {dataset.name}"), "mrr@10"
    for dataset in multi_hop(data):
        yield dataset, "all_gold@5"


def measured(data: Path) -> Iterator[list[str]]:
    """Measure the default retriever and its parts, and yield a row for each data set."""
    for dataset, metric in datasets(data):
        graph = graph_of(dataset)
        default = DefaultRetriever(graph, ROOT)
        words = Retriever(graph, ROOT, top_k=FUSED_DEPTH)
        sentences = Retriever(graph, default.sentences, target=ROOT, top_k=FUSED_DEPTH)
        both = FusionRetriever([words, sentences], "relative", [3, 1], top_k=FUSED_DEPTH)
        graph.create_node_group("name", EntityExtractor())
        linked = [LinkRetriever(inner, graph, via="name") for inner in (words, both)]
        setups = dict(zip(COLUMNS, (words, sentences, both, *linked, default), strict=True))
        figures = compare(dataset, setups, [metric], top_k=DEPTH).figures
        values = [f"{figures[name][metric].value:.3f}" for name in setups]
        yield [dataset.name, *values, *weak(dataset, metric)]


COLUMNS = ["words", "sentences", "both, 3:1", "words, links", "both, links", "default"]


def weak(dataset: Dataset, metric: str) -> list[str]:
    """Measure the default retriever with a simple embedding model.

    Returns:
        The metric, and the weight that the retriever gives to the embeddings.
    """
    try:
        import wordllama
    except ImportError:
        return ["skipped, not installed: wordllama", ""]
    model = wordllama.WordLlama.load(
        cache_dir=Path(wordllama.__file__).parent, disable_download=True
    )
    embedder = Embedder(lambda texts: model.embed(list(texts), norm=True), "wordllama")
    default: Any = DefaultRetriever(graph_of(dataset, embed=embedder), ROOT)
    value = compare(dataset, {"weak": default}, [metric], top_k=DEPTH).figure("weak", metric).value
    with trace() as traced:
        default.retrieve(dataset.questions[0].text)
    weights = traced.children[0].attributes["weights"]
    return [f"{value:.3f}", f"{weights[-1]:.1f}"]


BUDGETS = (400, 800, 1_600)

Span = tuple[str, int, int]
"""The id of a document, and the start and end (exclusive) of a part of its text."""


class Task(NamedTuple):
    """A benchmark task, with documents and questions and the positions of the answers."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[tuple[str, Sequence[Span]]]
    whole: bool = False  # True if only complete answers count


def chroma(data: Path) -> Task:
    """Read five corpora and 472 questions with the excerpts that answer them."""
    folder = data / "chroma"
    documents = [Document(p.read_text("utf8"), id=p.stem) for p in sorted(folder.glob("*.md"))]
    csv.field_size_limit(10**9)
    with (folder / "questions_df.csv").open(encoding="utf8", newline="") as file:
        questions = [
            (
                row["question"],
                [
                    (row["corpus_id"], part["start_index"], part["end_index"])
                    for part in json.loads(row["references"])
                ],
            )
            for row in csv.DictReader(file)
        ]
    return Task("Chroma", documents, questions)


def articles(path: Path) -> Task:
    """Read complete articles from a SQuAD file, and every fourth of its questions."""
    documents, questions = [], []
    for number, article in enumerate(json.loads(path.read_text("utf8"))["data"]):
        text = ""
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answer = question["answers"][0]
                start = len(text) + answer["answer_start"]
                span = (str(number), start, start + len(answer["text"]))
                questions.append((question["question"], [span]))
            text += paragraph["context"] + "\n\n"
        documents.append(Document(text, id=str(number)))
    return Task(path.stem, documents, questions[::4])


def guides(data: Path) -> Iterator[Task]:
    """Yield the tasks for this project's questions and for CMRC, which share one corpus."""
    documents = list(texts(data))
    sources = {str(document.id): document.text for document in documents}
    lines = Path(__file__).with_name("passage_questions.jsonl").read_text("utf8").splitlines()
    source_of = {row["question"]: row["source"] for row in map(json.loads, lines)}
    for kind, dataset in own_questions(sources).items():
        questions = []
        for question in dataset.questions:
            source = source_of[question.text]
            text, answer = sources[source], question.answers[0]
            start = text.find(answer)
            if start < 0:  # The texts differ only in whitespace.
                continue
            questions.append((question.text, [(source, start, start + len(answer))]))
        yield Task(kind, documents, questions, whole=True)
    spans: list[tuple[str, list[Span]]] = []
    for question in cmrc_questions(data, sources):
        (gold,) = question.gold
        spans.append((question.text, [(gold.document_id, gold.start, gold.end)]))
    yield Task("CMRC", documents, spans, whole=True)


def hotpotqa(data: Path) -> Task:
    """Read 100 questions of HotpotQA with the sentences that support their answers."""
    folder = data / "hotpotqa"
    rows = json.loads((folder / "hotpotqa_train.json").read_text("utf8"))
    corpus = json.loads((folder / "hotpotqa_train_corpus.json").read_text("utf8"))
    documents = [Document("".join(s), {"title": t}, id=t) for t, s in corpus.items()]
    questions = []
    for row in rows:
        spans = []
        for title, at in row["supporting_facts"]:
            start = len("".join(corpus[title][:at]))
            if at < len(corpus[title]):
                spans.append((title, start, start + len(corpus[title][at])))
        questions.append((row["question"], spans))
    return Task("HotpotQA", documents, questions)


def musique(data: Path) -> Task:
    """Read 100 questions of MuSiQue with the positions of all intermediate answers."""
    folder = data / "musique"
    rows = json.loads((folder / "musique_train.json").read_text("utf8"))
    corpus = json.loads((folder / "musique_train_corpus.json").read_text("utf8"))
    ids = {(row["title"], row["text"]): str(at) for at, row in enumerate(corpus)}
    documents = [
        Document(r["text"], {"title": r["title"]}, id=str(n)) for n, r in enumerate(corpus)
    ]
    questions = []
    for row in rows:
        spans = []
        for step in row["question_decomposition"]:
            paragraph = row["paragraphs"][step["paragraph_support_idx"]]
            start = paragraph["paragraph_text"].find(step["answer"])
            if start >= 0:
                source = ids[paragraph["title"], paragraph["paragraph_text"]]
                spans.append((source, start, start + len(step["answer"])))
        questions.append((row["question"], spans))
    return Task("MuSiQue", documents, [q for q in questions if q[1]])


def tasks(data: Path) -> Iterator[tuple[str, Callable[[], Iterator[Task]]]]:
    """Yield the names of the available data sets with functions that read them."""
    yield "chroma", lambda: iter([chroma(data)])
    for path in sorted((data / "xquad").glob("*.json")):
        yield path.stem, lambda path=path: iter([articles(path)])
    yield "guides", lambda: guides(data)
    yield "hotpotqa", lambda: iter([hotpotqa(data)])
    yield "musique", lambda: iter([musique(data)])


def recall(results: Sequence[ScoredNode], spans: Sequence[Span], whole: bool) -> float:
    """Return the share of the answers' characters that are contained in the results.

    If only complete answers count, the result is 0 or 1.
    """
    have: set[tuple[str, int]] = set()
    for result in results:
        node = result.node
        start, end = (0, len(node.text)) if node.start is None else (node.start, node.end)
        have.update((node.document_id, at) for at in range(start, end))
    gold = {(document, at) for document, start, end in spans for at in range(start, end)}
    share = len(gold & have) / len(gold)
    return float(share == 1.0) if whole else share


def fitting(ranking: Sequence[ScoredNode], budget: int) -> list[ScoredNode]:
    """Return the first results of a ranking that fit a token budget."""
    found, left = [], budget
    for result in ranking:
        if (cost := count_tokens(result.node.text)) <= left:
            found.append(result)
            left -= cost
    return found


def row_of(task: Task, chunks: Retriever, default: Any) -> list[str]:
    """Return the share of answers in chunks, passages and windows at each token budget."""
    totals = np.zeros((len(BUDGETS), 3))
    for question, spans in task.questions:
        rankings = [one.retrieve(question, top_k=20) for one in (chunks, default)]
        for budget, total in zip(BUDGETS, totals, strict=True):
            windows = default.retrieve(question, max_tokens=budget)
            assert sum(count_tokens(item.node.text) for item in windows) <= budget
            ways = [*(fitting(ranking, budget) for ranking in rankings), windows]
            total += [recall(results, spans, task.whole) for results in ways]
    count = len(task.questions)
    if task.whole:
        return [
            task.name,
            *(" / ".join(f"{n:.0f}" for n in row) + f" of {count}" for row in totals),
        ]
    return [task.name, *(" / ".join(f"{n / count:.3f}" for n in row) for row in totals)]


def rows(data: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row of the table for each available data set."""
    for name, read in tasks(data):
        if names and name not in names:
            continue
        documents: Sequence[Document] = ()
        try:
            for task in read():
                if task.documents is not documents:
                    documents, graph = task.documents, NodeGraph(progress=False)
                    graph.add(task.documents)
                    graph.create_node_group("chunk", SentenceSplitter(400, 0))
                    chunks, default = Retriever(graph, "chunk"), as_retriever(graph)
                yield row_of(task, chunks, default)
        except FileNotFoundError as error:
            yield [f"{name}: skipped, no {error.filename}"]


def whole_excerpts(data: Path) -> float:
    """Return the share of Chroma's excerpts that are completely contained in a single passage."""
    task = chroma(data)
    graph = NodeGraph(progress=False)
    graph.add(task.documents)
    graph.create_node_group("passage", PassageSplitter)
    spans = [(n.document_id, n.start, n.end) for n in graph.nodes("passage")]
    excerpts = [span for _, of_question in task.questions for span in of_question]
    held = [
        any(d == document and a <= start and end <= b for d, a, b in spans)
        for document, start, end in excerpts
    ]
    return sum(held) / len(held)


def answers_table(options: Namespace) -> None:
    """Print how often the retrieved text contains the answer, for each splitter and each search."""
    graph = NodeGraph(progress=False)
    documents = list(texts(options.data))
    graph.add(documents)
    sources = {str(d.id): d.text for d in documents}
    kinds = own_questions(sources)
    if asked := list(cmrc_questions(options.data, sources)):
        kinds["CMRC"] = Dataset(asked, name="CMRC 2018")
    rows = []
    for name, retriever in set_ups(graph, options.top_k):
        results = [
            compare(dataset, {name: retriever}, [WHOLE_ANSWER], top_k=options.top_k)
            for dataset in kinds.values()
        ]
        hits = [result.figure(name, WHOLE_ANSWER.name).value or 0.0 for result in results]
        sizes = [len(dataset) for dataset in kinds.values()]
        counts = [f"{h * size:.0f} of {size}" for h, size in zip(hits, sizes, strict=True)]
        tokens = [f"{result.costs(name)['tokens']:.0f}" for result in results]
        rows.append([name, *counts, tokens[0], tokens[-1]])
        print(*rows[-1], flush=True)
    header = ["cut and searched", *kinds, "tokens of a how-to's context", f"of {[*kinds][-1]}"]
    show(f"The answer's text is in the first {options.top_k}", header, rows)


def default_table(options: Namespace) -> None:
    """Print a table that compares the default retriever with its parts."""
    columns = ["set", *COLUMNS, "with weak vectors", "weight"]
    show("The default beside what it is made of", columns, measured(options.data))


def windows_table(options: Namespace) -> None:
    """Print how much of the answers the results contain within each token budget."""
    print(f"one passage has {whole_excerpts(options.data):.3f} of Chroma's excerpts as a whole")
    header = ["set", *(f"{budget:,} tokens" for budget in BUDGETS)]
    show("What of the answer is within a budget", header, rows(options.data, options.sets))


PARTS = {"answers": answers_table, "default": default_table, "windows": windows_table}


def main() -> None:
    """Run the selected benchmarks and print their tables."""
    parser = arguments(__doc__)
    parser.add_argument("--top-k", type=int, default=TOP_K)
    parser.add_argument("--only", choices=[*PARTS], help="one table, not all")
    parser.add_argument("--sets", nargs="*", default=[], help="of windows: chroma, guides, ...")
    options = parser.parse_args()
    for name, print_table in PARTS.items():
        if options.only in (None, name):
            print_table(options)


if __name__ == "__main__":
    main()
