"""How many of the exact ten HNSW finds on real vectors: multilingual-e5-small, Chinese and English.

Texts are the passages and sentences of CMRC 2018, HotpotQA and MuSiQue; every third of their
questions is asked. ``--most`` takes the first texts only (to embed all 20,000 takes many minutes;
vectors are kept in ``--cache``). They are far fewer than the 200,000 above which nodekin goes over
to HNSW, so it is told to follow the graph here, with its own settings and with other breadths; a
filter keeps every tenth vector. ``--static`` takes wordllama's vectors of the English texts instead
(``pip install wordllama``), and of the standard library's docstrings and their sentences.
"""

from __future__ import annotations

import ast
import contextlib
import sysconfig
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from datasets import multi_hop
from harness import arguments, cmrc, cmrc_dev, e5, seconds, show, with_cache
from quality_peers import titled

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
TOP_K = 10
BREADTHS = (64, 128, 256, 512, 1024)
HEADER = ["breadth", "recall@10", "worst question", "every tenth: recall@10", "worst", "ms"]


def corpus(data: Path) -> tuple[list[str], list[str]]:
    """Return distinct texts and questions of the sets that are there."""
    from nodekin.nodegraph import split_sentences

    (first, asked), (second, _) = cmrc(data), cmrc_dev(data)
    passages, questions = [first], [question.text for question in asked]
    for dataset in multi_hop(data):
        questions += [question.text for question in dataset.questions]
        passages.append([*titled(dataset).values()])
    sentences = (split_sentences(text) for some in passages[:2] for text in some)
    rest = (split_sentences(text) for text in second)
    texts = chain(*passages, *sentences, *rest)
    return list(dict.fromkeys(texts)), list(dict.fromkeys(questions))


def docstrings() -> list[str]:
    """Return the paragraphs and sentences of the docstrings of Python's standard library."""
    from nodekin.nodegraph import split_sentences

    texts: list[str] = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        with contextlib.suppress(SyntaxError, UnicodeDecodeError, ValueError):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
                    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
                    texts += (part for part in paragraphs if len(part) > 20)
    return [*texts, *chain(*(split_sentences(text) for text in texts))]


def english(texts: list[str]) -> list[str]:
    """Return the distinct texts without Chinese in them, of which the model makes heaps."""
    return [text for text in dict.fromkeys(texts) if max(text, default="") < "\u2e80"]


def static(texts: list[str]) -> Any:
    """Return wordllama's vectors of those texts that have a word it knows."""
    import wordllama

    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    vectors = model.embed(texts)
    return vectors[np.linalg.norm(vectors, axis=1) > 0]


def unit(vectors: Any) -> Any:
    """Return vectors of the length 1."""
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def recalls(nearest: Any, queries: Any, allowed: Any = None) -> tuple[float, float, float]:
    """Return the share of the exact ten that is found, the least of a question, and its ms."""
    from nodekin.retrievers.indexes.nearest_vectors import AllowedVectors

    counting = None if allowed is None else AllowedVectors(allowed)
    took, found = seconds(
        lambda: [nearest.search(q[np.newaxis], TOP_K, counting)[0] for q in queries]
    )
    cosines = queries @ nearest.vectors().T
    if allowed is not None:
        cosines[:, ~allowed] = -2
    shares = []
    for (rows, scores), row in zip(found, cosines, strict=True):
        last = np.sort(row)[-TOP_K] - 1e-6  # what ties with the tenth is as good
        best = rows[np.argsort(-scores, kind="stable")[:TOP_K]]
        shares.append(float((row[best] >= last).sum()) / TOP_K)
    return float(np.mean(shares)), min(shares), 1000 * took / len(queries)


def rows(vectors: Any, queries: Any) -> Iterator[list[str]]:
    """Measure each breadth on one graph."""
    from nodekin.retrievers.indexes import nearest_vectors
    from nodekin.retrievers.indexes.nearest_vectors import NearestVectors

    nearest = NearestVectors(vectors.shape[1])
    nearest.add(vectors)
    tenth = np.arange(len(nearest)) % 10 == 0
    _, _, exact = recalls(nearest, queries)
    nearest.use_graph(NearestVectors.linked(nearest.vectors()))
    own = nearest_vectors.BREADTH
    nearest_vectors._FOLLOW_COST = 0  # follow the graph, whatever comparing all would take
    for breadth in BREADTHS:
        nearest_vectors.BREADTH = breadth
        every, worst, each = recalls(nearest, queries)
        some, least, _ = recalls(nearest, queries, tenth)
        default = " (default)" if breadth == own else ""
        cells = [f"{every:.4f}", f"{worst:.1f}", f"{some:.4f}", f"{least:.1f}", f"{each:.2f}"]
        yield [f"{breadth}{default}", *cells]
    yield ["all compared", "1", "", "1", "", f"{exact:.2f}"]


def main() -> None:
    """Embed, and measure."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--most", type=int, help="how many texts at most")
    parser.add_argument("--static", action="store_true", help="static vectors, of more texts")
    options = parser.parse_args()
    texts, questions = corpus(options.data)
    try:
        if options.static:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                texts = english([*texts, *docstrings()])[: options.most]
            questions = english(questions)
            vectors, queries, name = unit(static(texts)), unit(static(questions)), "static"
        else:
            model, texts, name = e5(options.cache), texts[: options.most], "e5"
            questions = questions[::3]
            vectors, queries = unit(model.embed(texts)), unit(model.embed_queries(questions))
    except ImportError as error:
        raise SystemExit(f"skipped, not installed: {error.name}") from error
    title = f"{len(vectors):,} {name} vectors, {len(queries):,} questions"
    show(title, HEADER, rows(vectors, queries))


if __name__ == "__main__":
    main()
