"""Whether the answer's text is in what a model is given to read, by how texts are cut and searched.

Questions of our own (``passage_questions.jsonl``: how-tos and facts) over three kinds of text in
one corpus: Python's reference as every installation has it (``pydoc_data``), this project's
guides, CMRC 2018's Chinese paragraphs; and CMRC's own 1,002 questions over its paragraphs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, NamedTuple

from harness import arguments, show

from nodekin.nodegraph import (
    Document,
    MarkdownSplitter,
    NodeGraph,
    PassageSplitter,
    SentenceSplitter,
    count_tokens,
    split_paragraphs,
    split_sentences,
)
from nodekin.retrievers import DefaultRetriever, FusionRetriever, Retriever

HERE = Path(__file__).resolve().parent

CONTAIN_OTHERS = {"compound", "specialnames", "types"}  # topics that repeat smaller ones

TOP_K = 6  # what ``nodekin ask`` shows a model


class Asked(NamedTuple):
    """A question, the text that answers it and where in which document, how-to or fact."""

    question: str
    answer: str
    source: str
    kind: str
    start: int | None = None  # None for anywhere

    def is_in(self, node: Any) -> bool:
        """Whether a passage has the answer."""
        if self.start is None:
            return _plain(self.answer) in _plain(node.text)
        end = self.start + len(self.answer)
        return node.document_id == self.source and node.start <= self.start < end <= node.end


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


def own_questions(sources: Mapping[str, str]) -> Iterator[Asked]:
    """Yield the questions whose answer is in the text that is there, of this Python."""
    skipped = 0
    with (HERE / "passage_questions.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            asked = Asked(**json.loads(line))
            if _plain(asked.answer) in _plain(sources.get(asked.source, "")):
                yield asked
            else:
                skipped += 1
    if skipped:
        print(f"skipped: {skipped} questions whose answer is not in the texts that are here")


def cmrc_questions(data: Path, sources: Mapping[str, str]) -> Iterator[Asked]:
    """Yield CMRC's own questions, each with the place of its answer."""
    file = data / "cmrc2018" / "questions.jsonl"
    begins = {
        paragraph: (name, at)
        for name, text in sources.items()
        if name.startswith("cmrc2018/")
        for paragraph, at in _lines(text)
    }
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        record = json.loads(line)
        name, at = begins[record["context"].strip()]
        start = at + record["answer_starts"][0]
        yield Asked(record["question"], record["answers"][0], name, "CMRC", start)


def _lines(text: str) -> Iterator[tuple[str, int]]:
    at = 0
    for line in text.split("\n"):
        yield line.strip(), at
        at += len(line) + 1


def _plain(text: str) -> str:
    return " ".join(text.split())


def share(retriever: Any, questions: Sequence[Asked]) -> tuple[int, float]:
    """Return for how many questions the answer is in the context, and the context's tokens."""
    hits, sizes = 0, []
    for asked in questions:
        results = retriever.retrieve(asked.question)
        hits += any(asked.is_in(r.node) for r in results)
        sizes.append(sum(count_tokens(r.node.text) for r in results))
    return hits, statistics.mean(sizes)


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


def main() -> None:
    """Print one table."""
    parser = arguments(__doc__)
    parser.add_argument("--top-k", type=int, default=TOP_K)
    options = parser.parse_args()
    graph = NodeGraph(progress=False)
    documents = list(texts(options.data))
    graph.add(documents)
    sources = {str(d.id): d.text for d in documents}
    questions = list(own_questions(sources))
    kinds: dict[str, list[Asked]] = {
        "how-tos": [q for q in questions if q.kind == "how-to"],
        "facts": [q for q in questions if q.kind == "fact"],
        "CMRC": list(cmrc_questions(options.data, sources)),
    }
    rows = []
    for name, retriever in set_ups(graph, options.top_k):
        results = [share(retriever, asked) for asked in kinds.values()]
        sizes = map(len, kinds.values())
        counts = [f"{hits} of {size}" for (hits, _), size in zip(results, sizes, strict=True)]
        tokens = [f"{size:.0f}" for _, size in results]
        rows.append([name, *counts, tokens[0], tokens[2]])
        print(*rows[-1], flush=True)
    header = ["cut and searched", *kinds, "tokens of a how-to's context", "of CMRC's"]
    show(f"The answer's text is in the first {options.top_k}", header, rows)


if __name__ == "__main__":
    main()
