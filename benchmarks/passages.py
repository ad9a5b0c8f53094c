"""Whether the answer's text is in what a model is given to read, by how texts are cut and searched.

Questions of our own (``passage_questions.jsonl``: how-tos and facts) over three kinds of text in
one corpus: Python's reference as every installation has it (``pydoc_data``), this project's
guides, CMRC 2018's Chinese paragraphs; and CMRC's own 1,002 questions over its paragraphs.

And the default retriever beside what it is made of, on every set that there is data for: MRR@10 of
the paragraph that answers (CMRC 2018, XQuAD); the share of questions with all gold passages among
the first five (HotpotQA, MuSiQue). Weak vectors are wordllama's (static, English: ``pip install
wordllama``); "weight" is what the default gives them, beside 3 and 1 of the words of passages and
sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

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
    split_paragraphs,
    split_sentences,
)
from nodekin.retrievers import DefaultRetriever, FusionRetriever, LinkRetriever, Retriever, trace
from nodekin.retrievers.evaluation import (
    Dataset,
    GoldSpan,
    Judgement,
    Metric,
    Question,
    RetrievalCase,
)

HERE = Path(__file__).resolve().parent

CONTAIN_OTHERS = {"compound", "specialnames", "types"}  # topics that repeat smaller ones

DEPTH, FUSED_DEPTH = 10, 50

TOP_K = 6  # what ``nodekin ask`` shows a model


def whole_answer(case: RetrievalCase) -> Judgement:
    """Say whether one result has the whole answer: its place if that is known, else its text."""
    question = case.question
    if question.gold:
        (span,) = (gold for gold in question.gold if isinstance(gold, GoldSpan))
        places = (i for i in case.items if i.document_id == span.document_id and i.end is not None)
        found = any((i.start or 0) <= span.start and span.end <= (i.end or 0) for i in places)
    else:
        found = any(_plain(question.answers[0]) in _plain(item.text) for item in case.items)
    return Judgement(float(found))


WHOLE_ANSWER = Metric("whole answer", whole_answer)


def texts(data: Path) -> Iterator[Document]:
    """Yield the corpus; what is not there is named and left out."""
    for name, text in topics.items():
        if name not in CONTAIN_OTHERS:
            yield Document(text, id=f"pydoc/{name}")
    for file in (HERE.parent / "docs").glob("*.md"):
        yield Document(file.read_text(encoding="utf-8"), id=f"docs/{file.name}")
    folder = data / "cmrc2018"
    if not folder.is_dir():
        print(f"skipped: no CMRC 2018 in {folder}")
    for file in sorted(folder.glob("kb/*.txt")):
        yield Document(file.read_text(encoding="utf-8"), id=f"cmrc2018/{file.name}")


def own_questions(sources: Mapping[str, str]) -> dict[str, Dataset]:
    """Return, by kind, the questions whose answer is in the text that is there, of this Python."""
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
    """Yield CMRC's own questions, each with the place of its answer."""
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
    """Yield ways to cut and to search."""
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
    """Yield the sets that there are, each with its metric."""
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
    """Yield a row for each set, as it is done."""
    for dataset, metric in datasets(data):
        graph = graph_of(dataset)
        default = DefaultRetriever(graph, ROOT)
        words = Retriever(graph, ROOT, top_k=FUSED_DEPTH)
        sentences = Retriever(graph, default.sentences, target=ROOT, top_k=FUSED_DEPTH)
        both = FusionRetriever([words, sentences], "relative", [3, 1], top_k=FUSED_DEPTH)
        graph.create_node_group("name", EntityExtractor(), scope="group")
        linked = [LinkRetriever(inner, graph, via="name") for inner in (words, both)]
        setups = dict(zip(COLUMNS, (words, sentences, both, *linked, default), strict=True))
        figures = compare(dataset, setups, [metric], top_k=DEPTH).figures
        values = [f"{figures[name][metric].value:.3f}" for name in setups]
        yield [dataset.name, *values, *weak(dataset, metric)]


COLUMNS = ["words", "sentences", "both, 3:1", "words, links", "both, links", "default"]


def weak(dataset: Dataset, metric: str) -> list[str]:
    """Return the default's figure with weak vectors, and the weight that it gives them."""
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


def main() -> None:
    """Print both tables."""
    parser = arguments(__doc__)
    parser.add_argument("--top-k", type=int, default=TOP_K)
    options = parser.parse_args()
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
    columns = ["set", *COLUMNS, "with weak vectors", "weight"]
    show("The default beside what it is made of", columns, measured(options.data))


if __name__ == "__main__":
    main()
