"""Measure whether query strategies find all passages that are needed to answer a question.

The language models are scripted, so that the strategies are measured and not a particular model:

- *oracle* (MuSiQue): writes the correct sub-questions one after another, and returns the correct
  answer to each, regardless of the passages found. Sub-questions that are written before any answer
  is known do not contain earlier answers.
- *reading oracle* (MuSiQue): like the oracle, but it answers a sub-question and continues only if
  the correct passage is among the passages in the prompt.
- *reading oracle* (HotpotQA, which has no decompositions): asks about the title of a relevant
  passage if this title occurs in the question, or in the other relevant passage after it was shown.
  Like a model that reads well, it always follows the right entity.
- *wandering*: asks about names that occur in the passages, answers with other names, and is never
  satisfied. This is the worst model that still follows the output format.
- *garbage*: returns empty output, refusals, nonsense and unrelated JSON. The results must equal
  those of the plain retriever.

Next, the default search is compared with sub-questions and phrasings around it. Their model writes
the correct sub-questions of MuSiQue without answers.

Then ``model_strategies.py`` compares all strategies with those of other frameworks, using the
oracle, or a real model behind OPENAI_BASE_URL with ``--model NAME``. ``--only model --seconds 600``
stops after ten minutes per data set, and a later run continues.

Finally, agents with corpus tools are compared with the first passages of the default retriever, by
the number of relevant passages that were read and by their tokens. An agent is scripted and sees
only the output of the tools. On MuSiQue, it searches for the correct sub-questions with the answers
of earlier steps. On HotpotQA, it searches for the question, and then for the titles of relevant
passages that it has read. On CMRC 2018, it searches for the question. Another agent is given only
the answers.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import (
    arguments,
    cells,
    cmrc_answers,
    compare,
    e5_model,
    every,
    graph_of,
    minilm_model,
    multi_hop,
    show,
    size,
    titled,
    with_cache,
)

from nodekin.nodegraph import ROOT, EntityExtractor, Node, count_tokens
from nodekin.retrievers import (
    CorpusTools,
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    MultiQueryRetriever,
    MultiStepRetriever,
    Retriever,
    SubQuestionRetriever,
)
from nodekin.retrievers.corpus_tools.tool_output import ToolOutput
from nodekin.retrievers.evaluation import Dataset, GoldDocument, GoldSpan, Question

METRICS = ("all_gold@5", "all_gold@10")
DEPTH = 10
Model = Callable[[str], str]
GARBAGE = (
    *("", "asdf qwer zxcv", "I'm sorry, but I can't help with that."),
    *('{"a": 1}', "抱歉", "```"),
)


class Gold(NamedTuple):
    """A step of the correct decomposition, with sub-question, relevant passage and answer."""

    question: str
    passage: str
    answer: str


def musique_steps(data: Path) -> dict[str, list[Gold]]:
    """Return the correct steps of each question, in which earlier answers are filled in."""
    path = data / "musique" / "musique_train.json"
    steps = {}
    for row in json.loads(path.read_text(encoding="utf-8")):
        passages = {p["idx"]: p["paragraph_text"] for p in row["paragraphs"]}
        answers: dict[str, str] = {}
        golds = []
        for number, step in enumerate(row["question_decomposition"], 1):
            question = step["question"]
            for mark, answer in answers.items():
                question = question.replace(mark, answer)
            answers[f"#{number}"] = step["answer"]
            passage = passages[step["paragraph_support_idx"]]
            golds.append(Gold(question, passage, step["answer"]))
        steps[row["question"]] = golds
    return steps


def asked_in(prompt: str, questions: Mapping[str, Any]) -> str:
    """Return the longest known question that occurs in a prompt."""
    return max((q for q in questions if f": {q}\n" in prompt), key=len)


def oracle(steps: Mapping[str, list[Gold]], *, reads: bool) -> Model:
    """Return a scripted model that follows the correct steps."""

    def model(prompt: str) -> str:
        golds = steps[asked_in(prompt, steps)]
        done = sum(f". {gold.question} -> " in prompt for gold in golds)
        answer = golds[done - 1].answer if done else "unknown"
        if reads and done and golds[done - 1].passage.strip() not in prompt:
            return "Answer: unknown\nAnswered: no\nNext question: NONE"
        if done == len(golds):
            return f"Answer: {answer}\nAnswered: yes\nNext question: NONE"
        return f"Answer: {answer}\nAnswered: no\nNext question: {golds[done].question}"

    return model


def parts_of(data: Path) -> dict[str, list[str]]:
    """Return the sub-questions of each MuSiQue question, without the answers to earlier steps."""
    path = data / "musique" / "musique_train.json"
    return {
        row["question"]: [
            re.sub(r"\s*#\d|>>", "", step["question"]).strip(" ?") + "?"
            for step in row["question_decomposition"]
        ]
        for row in json.loads(path.read_text(encoding="utf-8"))
    }


def decomposing(data: Path) -> Model:
    """Return a scripted model that decomposes a question before any step is answered."""
    parts = parts_of(data)

    def model(prompt: str) -> str:
        return json.dumps({"questions": parts[asked_in(prompt, parts)]})

    return model


def hotpotqa_reader(data: Path, dataset: Dataset) -> Model:
    """Return a scripted model that always follows the right entity."""
    path = data / "hotpotqa" / "hotpotqa_train.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    answers = {row["question"]: row["answer"] for row in rows}
    titles = {row["question"]: sorted({t for t, _ in row["supporting_facts"]}) for row in rows}
    passages = {document.id: document.text for document in dataset.documents}
    below_titles = titled(dataset)

    def model(prompt: str) -> str:
        question = asked_in(prompt, answers)
        texts = {title: passages[title].strip() for title in titles[question]}
        shown = [title for title, text in texts.items() if text in prompt]
        if len(shown) == len(titles[question]):
            return f"Answer: {answers[question]}\nAnswered: yes\nNext question: NONE"
        read = " ".join([question, *(below_titles[title] for title in shown)])
        for title in titles[question]:
            name = re.sub(r" \(.*\)$", "", title)
            if title not in shown and name in read and f"is {name}? -> " not in prompt:
                return f"Answer: unknown\nAnswered: no\nNext question: Who or what is {name}?"
        return "Answer: unknown\nAnswered: no\nNext question: NONE"

    return model


def strategies(models: Mapping[str, Model], plain: Any) -> Iterator[tuple[str, Any]]:
    """Yield all strategies around a retriever, with their names."""
    for name, model in models.items():
        if name in ("decompositions", "garbage"):
            yield f"sub-questions, {name}", SubQuestionRetriever(plain, model)
        if name != "decompositions":
            yield f"multi-step, {name}", MultiStepRetriever(plain, model)


def setups(dataset: Dataset, models: Mapping[str, Model]) -> Iterator[tuple[str, Any]]:
    """Yield a plain retriever, a retriever with links, and each strategy combined with both."""
    graph = graph_of(dataset)
    graph.create_node_group("entity", EntityExtractor())
    plain = Retriever(graph, ROOT, "bm25", top_k=DEPTH)
    links = LinkRetriever(plain, graph, via="entity", top_k=DEPTH)
    bases = {"bm25": plain, "bm25, following links": links}
    yield from bases.items()
    for base, inner in bases.items():
        for name, strategy in strategies(models, inner):
            yield f"{name} (around {base})", strategy
    for name, strategy in strategies(models, plain):
        for base, other in bases.items():
            yield f"{name}, fused with {base}", FusionRetriever([strategy, other], top_k=DEPTH)


def rows(dataset: Dataset, models: Mapping[str, Model]) -> Iterator[list[str]]:
    """Measure the quality and the number of model calls of each system, and yield the rows."""
    for name, retriever in setups(dataset, models):
        measured = compare(dataset, {name: retriever}, METRICS)
        calls = measured.costs(name)["model_calls"] / len(dataset)
        yield [name, *cells(measured, name, 2), f"{calls:.1f}" if calls else ""]


EMBEDDINGS = {"MiniLM": minilm_model, "e5": e5_model}
"""Functions that load the embedding models of the default search, by name."""


def default_rows(data: Path, cache: Path, embeddings: Sequence[str]) -> Iterator[list[str]]:
    """Measure sub-questions and phrasings around the default search, using correct questions.

    Args:
        data: The folder of the data.
        cache: The folder for cached vectors.
        embeddings: The names of the embedding models. A search by words is always measured.
    """
    dataset = next(item for item in multi_hop(data) if item.name == "MuSiQue")
    model = decomposing(data)
    graphs = {"words": graph_of(dataset)}
    for embedding in embeddings:
        model_of_vectors = EMBEDDINGS[embedding](cache)
        graphs[f"words and {embedding}"] = graph_of(dataset, embed=model_of_vectors.embedder())
    for name, graph in graphs.items():
        for links in (None, False):
            plain = DefaultRetriever(graph, ROOT, follow_links=links)
            plain.build()
            systems = {
                "plain": plain,
                "sub-questions": SubQuestionRetriever(plain, model),
                "phrasings": MultiQueryRetriever(plain, model, max_queries=5),
            }
            way = name if links is None else f"{name}, without links"
            recalls = [recall_at_5(dataset, retriever) for retriever in systems.values()]
            yield [way, *(f"{recall:.3f}" for recall in recalls)]


def recall_at_5(dataset: Dataset, retriever: Any) -> float:
    """Return the average share of the relevant documents that are among the first five results."""
    shares = []
    for question in dataset.questions:
        gold = {item.document_id for item in question.gold if isinstance(item, GoldDocument)}
        found = {result.node.document_id for result in retriever.retrieve(question.text, top_k=5)}
        shares.append(len(gold & found) / len(gold))
    return statistics.mean(shares)


def garbage() -> Model:
    """Return a scripted model whose output is unusable and different each time."""
    said = itertools.cycle(GARBAGE)
    return lambda prompt: next(said)


def wandering() -> Model:
    """Return a scripted model that follows any name that it reads, and answers with it."""
    chance = random.Random(2018)

    def model(prompt: str) -> str:
        found = prompt.partition("<passages>")[2].partition("</passages>")[0]
        names = re.findall(r"[A-Z]\w+(?: [A-Z]\w+)+", found) or ["Nobody"]
        asked, answer = chance.choice(names), chance.choice(names)
        return f"Answer: {answer}\nAnswered: no\nNext question: Who or what is {asked}?"

    return model


Entries = Sequence[dict[str, Any]]

BUDGET = 4000
DEPTHS = (3, 5, 6, 10, 20, 40)  # Six is the default number of results.


class Reading(NamedTuple):
    """Counts of relevant passages that were read, all relevant passages, tokens and calls."""

    gold: int
    of: int
    tokens: int
    calls: int = 1


class Step(NamedTuple):
    """A search query of an agent, with the answer at which the agent stops searching."""

    query: str
    answer: str | None = None


class Agent:
    """A scripted agent that searches with corpus tools, and records the passages that it has read.

    Args:
        tools: The tools for searching and reading the corpus.
        max_tokens: The maximum number of tokens that a search returns.
        pages: The maximum number of pages of results per search.
    """

    def __init__(self, tools: CorpusTools, max_tokens: int, pages: int) -> None:
        self.tools, self.max_tokens, self.pages = tools, max_tokens, pages

    def read(self, gold: Sequence[GoldSpan], steps: list[Step]) -> Reading:
        """Search for each step, and for titles of relevant passages that occur in the results."""
        self.shown, self.missing, self.seen = dict[str, set[int]](), list(gold), ""
        self.gold, self.steps, self.tokens, self.calls = gold, steps, 0, 0
        waiting, known = list(steps), {step.query for step in steps}
        while waiting and self.tokens < BUDGET:
            step, skip = waiting.pop(0), 0
            for _ in range(self.pages):
                output = self._call("search", {"query": step.query, "skip": skip}, self.max_tokens)
                skip += len(output.entries)
                self._look_at(output.entries, step)
                titles = set() if step.answer else self._titles() - known
                waiting += map(Step, sorted(titles))
                known |= titles
                done = not self.missing if step.answer is None else step.answer in self.seen
                if done or titles or not output.left_out or self.tokens >= BUDGET:
                    break
        count, of = self._reached()
        return Reading(count if self.tokens <= BUDGET else 0, of, self.tokens, self.calls)

    def _call(self, name: str, arguments: dict[str, Any], max_tokens: int) -> ToolOutput:
        output = self.tools.call(name, arguments, max_tokens=max_tokens)
        self.tokens, self.calls = self.tokens + output.tokens, self.calls + 1
        self.seen += "".join(entry["text"] or "" for entry in output.entries)
        for entry in output.entries:
            for start, end in entry.get("parts") or [(entry["start"], entry["end"])]:
                shown = self.shown.setdefault(entry["document"], set())
                shown.update(range(start, end + 3))  # including the space between two parts
        self.missing = [
            span
            for span in self.missing
            if not self.shown.get(span.document_id, set()).issuperset(range(span.start, span.end))
        ]
        return output

    def _document(self, span: GoldSpan) -> Node:
        return self.tools.graph.node(span.document_id)

    def _look_at(self, entries: Entries, step: Step) -> None:
        """Read the rest of a passage that is relevant but was shown only in part."""
        for entry in entries:
            place = {key: entry[key] for key in ("document", "start", "end")}
            if any(overlaps(span, *place.values()) for span in self.missing):
                self._call("read", place, 600)

    def _reached(self) -> tuple[int, int]:
        """Return the number of relevant passages that were read, and their total number."""
        return len(self.gold) - len(self.missing), len(self.gold)

    def _titles(self) -> set[str]:
        """Return the titles of relevant passages that occur in the text read so far."""
        titles = (str(self._document(span).metadata.get("title", "")) for span in self.missing)
        return {
            t for title in titles if (t := re.sub(r"\s*\(.*?\)$", "", title)) in self.seen and t
        }


class Reader(Agent):
    """An agent that is given the answers of the steps instead of the relevant passages.

    As long as an answer is missing, the agent reads more of the first passage that was shown in
    part.
    """

    def _look_at(self, entries: Entries, step: Step) -> None:
        parts = [entry for entry in entries if entry["text"] and not entry["whole"]]
        if parts and str(step.answer) not in self.seen:
            self._call("read", {key: parts[0][key] for key in ("document", "start", "end")}, 600)

    def _reached(self) -> tuple[int, int]:
        return sum(str(step.answer) in self.seen for step in self.steps), len(self.steps)


def overlaps(span: GoldSpan, document_id: str, start: int, end: int) -> bool:
    """Return whether a part of a document overlaps an expected span."""
    return span.document_id == document_id and span.start < end and start < span.end


def decompositions(data: Path) -> list[list[Step]]:
    """Return the correct sub-questions of each MuSiQue question, with earlier answers filled in."""
    file = data / "musique" / "musique_train.json"
    result = []
    for row in json.loads(file.read_text(encoding="utf-8")):
        steps = list[Step]()
        for part in row["question_decomposition"]:
            text = re.sub(r"#(\d)", lambda m: steps[int(m[1]) - 1].answer or "", part["question"])  # noqa: B023
            steps.append(Step(text.replace(" >> ", ", "), part["answer"]))
        result.append(steps)
    return result


def agent_tasks(data: Path, most: int | None) -> Iterator[tuple[Dataset, list[list[Step]]]]:
    """Yield the available data sets with at most ``most`` questions, and the questions' steps."""
    for every_one in multi_hop(data):
        dataset = Dataset(every_one.questions[:most], every_one.documents, every_one.name)
        is_musique = dataset.name == "MuSiQue"
        steps = decompositions(data) if is_musique else [[Step(q.text)] for q in dataset.questions]
        yield dataset, steps[:most]
    dataset = every(cmrc_answers(data), 200)
    yield dataset, [[Step(one.text, one.answers[0])] for one in dataset.questions]


def spans_of(question: Question, lengths: dict[str, int]) -> list[GoldSpan]:
    """Return the expected results of a question as spans of documents."""
    return [
        gold
        if isinstance(gold, GoldSpan)
        else GoldSpan(gold.document_id, 0, lengths[gold.document_id])
        for gold in question.gold
    ]


def agent_rows(
    data: Path, max_tokens: int, pages: int, questions: int | None = None
) -> Iterator[list[str]]:
    """Measure each system on each data set with at most ``questions`` questions."""
    for dataset, steps in agent_tasks(data, questions):
        graph = graph_of(dataset)
        lengths = {document.id: len(document.text) for document in dataset.documents}
        gold_of = [spans_of(question, lengths) for question in dataset.questions]
        agent = Agent(CorpusTools(graph), max_tokens, pages)
        readings = [agent.read(gold, parts) for gold, parts in zip(gold_of, steps, strict=True)]
        ours = per_token(readings)
        yield agent_row(dataset.name, "agent, search and read", readings, ours)
        if steps[0][0].answer:
            reader = Reader(agent.tools, max_tokens, pages)
            readings = [
                reader.read(gold, parts) for gold, parts in zip(gold_of, steps, strict=True)
            ]
            yield agent_row(dataset.name, "agent without gold: answers", readings, ours)
        retriever = DefaultRetriever(graph)
        for place in DEPTHS:
            readings = []
            for question, gold in zip(dataset.questions, gold_of, strict=True):
                nodes = [one.node for one in retriever.retrieve(question.text, top_k=place)]
                tokens = sum(count_tokens(node.text) for node in nodes)
                places = [(node.document_id, node.start, node.end) for node in nodes]
                count = sum(any(overlaps(span, *one) for one in places) for span in gold)
                readings.append(Reading(count, len(gold), tokens))
            yield agent_row(dataset.name, f"top_k={place}", readings, ours)
        texts = {document.id: document.text for document in dataset.documents}
        ideal = [
            Reading(
                len(gold),
                len(gold),
                sum(count_tokens(texts[s.document_id][s.start : s.end]) for s in gold),
            )
            for gold in gold_of
        ]
        yield agent_row(dataset.name, "the gold and nothing else", ideal, ours)


def per_token(readings: list[Reading]) -> float:
    """Return the number of relevant passages or spans that were read per 1,000 tokens."""
    tokens = sum(reading.tokens for reading in readings)
    return 1000 * sum(reading.gold for reading in readings) / tokens


def agent_row(name: str, system: str, readings: list[Reading], ours: float) -> list[str]:
    """Return a table row with the measurements of a system.

    The last value is the number of relevant passages per token for the agent, divided by the number
    for this system.
    """
    whole = statistics.mean(reading.gold == reading.of for reading in readings)
    return [
        name,
        system,
        f"{whole:.2f}",
        f"{sum(reading.gold for reading in readings) / sum(r.of for r in readings):.2f}",
        f"{statistics.mean(reading.tokens for reading in readings):,.0f}",
        f"{statistics.mean(reading.calls for reading in readings):.1f}",
        f"{per_token(readings):.2f}",
        f"{ours / per_token(readings):.2f}",
    ]


def scripted_tables(data: Path, questions: int | None) -> None:
    """Measure each data set with scripted models, and print the tables."""
    for whole in multi_hop(data):
        dataset = Dataset(whole.questions[:questions], whole.documents, whole.name)
        models: dict[str, Model] = {"garbage": garbage(), "wandering": wandering()}
        if dataset.name == "MuSiQue":
            steps = musique_steps(data)
            models["decompositions"] = decomposing(data)
            models["oracle"] = oracle(steps, reads=False)
            models["reading oracle"] = oracle(steps, reads=True)
        else:
            models["reading oracle"] = hotpotqa_reader(data, dataset)
        header = ["system", *METRICS, "calls a question"]
        show(f"Strategies, {size(dataset)}", header, rows(dataset, models))


DEFAULT_NOTE = "MuSiQue, 100 questions. The model writes the gold parts, without answers."

MODEL_NOTE = (
    "Questions; recall@5 / recall of all documents; calls; tokens; degraded answers. All systems "
    "search with the same default retriever, five documents a query. The frameworks return the "
    "results of one query after the other, without a ranking. A degraded answer is a reply that "
    "could not be used, or an error. The oracle has MuSiQue's gold sub-questions and answers, and "
    "its tokens are estimated; on CMRC 2018, it splits nothing and all systems have 1.000. "
    "`local`: Qwen2.5-Coder-1.5B-Instruct, 4 bit, up to 200 tokens a reply. The figures are of "
    "these models on these sets, and no advice for others. Empty cells are not measured."
)


def main() -> None:
    """Run the benchmark on each available data set."""
    # Unusable output causes a warning each time.
    logging.getLogger("nodekin").setLevel(logging.ERROR)
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--only", choices=("scripted", "default", "model", "agents"))
    parser.add_argument("--model", action="append", help="a model behind OPENAI_BASE_URL")
    parser.add_argument("--system", action="append", help="with --only model: only this system")
    parser.add_argument("--embeddings", nargs="+", default=[], choices=EMBEDDINGS)
    parser.add_argument("--seconds", type=float, help="per model and set")
    parser.add_argument("--questions", type=int, help="only so many questions of each set")
    parser.add_argument("--tokens", type=int, default=80, help="of one search of an agent")
    parser.add_argument("--pages", type=int, default=10, help="of one search of an agent")
    options = parser.parse_args()
    if options.only in (None, "scripted"):
        scripted_tables(options.data, options.questions)
    if options.only in (None, "default"):
        columns = ["the default search", "plain", "sub-questions", "phrasings"]
        found = default_rows(options.data, options.cache, options.embeddings)
        show("Strategies around the default search: recall@5", columns, found, DEFAULT_NOTE)
    if options.only in (None, "model"):
        import model_strategies

        models = [model_strategies.ORACLE, *(options.model or ())]
        count = options.questions or model_strategies.QUESTIONS
        found = model_strategies.tables(
            options.data, models, options.cache, count, options.seconds, options.system or ()
        )
        columns, *rows_of_systems = model_strategies.by_system(found)
        show("Strategies with a model", columns, rows_of_systems, MODEL_NOTE)
    if options.only in (None, "agents"):
        columns = ["set", "system", f"all gold within {BUDGET:,} tokens", "gold", "tokens", "calls"]
        columns += ["gold per 1,000 tokens", "the agent's is ... times that"]
        found = agent_rows(options.data, options.tokens, options.pages, options.questions)
        show("Agents", columns, found)


if __name__ == "__main__":
    main()
