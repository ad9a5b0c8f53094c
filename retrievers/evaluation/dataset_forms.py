"""Read questions in whatever form a file has: SQuAD, BEIR, those of the frameworks and others."""

from __future__ import annotations

import ast
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ..validation import choice
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, GoldSpan, Question
from .loaders import (
    Row,
    check_row,
    get_text,
    is_csv,
    load_csv,
    load_jsonl,
    read_json,
    read_json_lines,
    read_rows,
)

_logger = logging.getLogger("nodekin")

QUESTION_NAMES = ("question", "query", "input", "user_input", "prompt", "messages")
"""Under which a question is looked for, in this order."""

ANSWER_NAMES = (
    *("answer", "reference_answer", "reference", "ground_truth", "ground_truths"),
    *("expected", "expected_output", "expected_answer", "output", "response"),
)
"""Under which a right answer is looked for, in this order."""

PASSAGE_NAMES = (
    *("reference_contexts", "reference_context", "contexts", "context", "documents", "passages"),
)
"""Under which gold passages are looked for, in this order."""

LlamaIndexGold = Literal["passages", "documents"]
"""What is gold of a set with a corpus: the text of a node, or its id as that of a document."""

Examples: TypeAlias = str | Path | Iterable[Any]
"""The path of a file, or examples."""


def load_langchain(
    source: Examples,
    *,
    question: str | None = None,
    answer: str | None = None,
    passages: str | None = None,
) -> Dataset:
    """Read examples of LangChain and LangSmith.

    An example has ``inputs`` and perhaps ``outputs``, or is flat, as ``QAGenerateChain`` makes
    them (``{"query": ..., "answer": ...}``). A question may be a list of messages: the last of a
    person is read. Passages are texts, or documents with ``page_content``, and gold.

    Args:
        source: LangSmith's examples (``client.list_examples(...)``) or dicts of the same form. Or
            the path of a file with them: JSON, JSON lines, or a CSV file, whose columns are
            ``inputs`` and ``outputs``, or ``input_question``, ``inputs.question`` and so on, or
            the names themselves.
        question: Under which name the question is. None where there is one input, or one of
            ``QUESTION_NAMES``.
        answer: The same of the answer, and ``ANSWER_NAMES``. Examples need none.
        passages: The same of gold passages, in outputs or inputs, and ``PASSAGE_NAMES``.

    Raises:
        ValueError: If an example has another form, or it is not clear which name is meant.
    """
    questions = []
    for index, (where, row) in enumerate(_rows(source, "examples"), 1):
        inputs, outputs = _sides(row)
        if not isinstance(inputs, Mapping) or not isinstance(outputs, Mapping):
            raise ValueError(
                f"{where} has no inputs and outputs but {row!r:.120}; an example is an object like "
                '{"inputs": {"question": ...}, "outputs": {"answer": ...}}'
            )
        has_sides = inputs is not outputs
        requested = _name(where, inputs, question, QUESTION_NAMES, "question", only=has_sides)
        gold_name = _passage_name(where, {**inputs, **outputs}, passages)
        others = {k: v for k, v in outputs.items() if k != gold_name or k == answer}
        answered = ""
        if others or answer is not None:
            answered = _name(
                where, others, answer, ANSWER_NAMES, "answer", only=has_sides, required=False
            )
        gold = outputs.get(gold_name, inputs.get(gold_name))
        questions.append(
            Question(
                str(row.get("id") or index),
                _text(inputs[requested], where, requested),
                _gold(gold, where),
                _answers(others.get(answered), where, answered),
            )
        )
    return Dataset(questions, name=_title(source, "examples"))


def load_llama_index(source: str | Path | object, gold: LlamaIndexGold = "passages") -> Dataset:
    """Read an evaluation set of LlamaIndex.

    - ``EmbeddingQAFinetuneDataset``: its corpus are documents with the ids of the nodes, and what
      is relevant is gold: by text, which holds wherever the same nodes are searched, or by id.
    - ``LabelledRagDataset``: reference contexts are gold passages, the reference answer the answer.
    - ``QueryResponseDataset``: questions and answers.

    Args:
        source: The path of the file that its ``save_json`` wrote, or the object itself.
        gold: What is gold of a set with a corpus.

    Raises:
        ValueError: If it has another form, or a relevant id is not in the corpus.
    """
    choice(gold, "gold", get_args(LlamaIndexGold))
    title, data = _title(source, "LlamaIndex"), _plain(source)
    if not isinstance(data, Mapping):
        raise ValueError(f"{title} is no object but {data!r:.80}; {_LLAMA_INDEX_FORMS}")
    if isinstance(data.get("examples"), list):
        questions = [_labelled(e, n, title) for n, e in enumerate(data["examples"], 1)]
        return Dataset(questions, name=title)
    queries, responses, corpus, relevant = (
        part if isinstance(part := data.get(name), Mapping) else None
        for name in ("queries", "responses", "corpus", "relevant_docs")
    )
    if queries is not None and responses is not None:
        questions = [
            Question(str(i), _text(text, title, i), (), tuple(filter(None, [responses.get(i)])))
            for i, text in queries.items()
        ]
        return Dataset(questions, name=title)
    if queries is None or corpus is None or relevant is None:
        raise ValueError(f"{title} has {', '.join(map(repr, data))}; {_LLAMA_INDEX_FORMS}")
    questions = []
    for identity, text in queries.items():
        ids = relevant.get(identity, [])
        if missing := [item for item in ids if item not in corpus]:
            raise ValueError(
                f"{title}: node {missing[0]!r} is relevant for query {identity!r}, and not in the "
                "corpus"
            )
        items = [GoldPassage(corpus[i]) if gold == "passages" else GoldDocument(i) for i in ids]
        questions.append(Question(str(identity), _text(text, title, identity), tuple(items)))
    return Dataset(questions, [Document(text, id=i) for i, text in corpus.items()], title)


def _labelled(example: Mapping[str, Any], index: int, title: str) -> Question:
    where = f"{title}, example {index}"
    return Question(
        str(index),
        _text(example.get("query"), where, "query"),
        _gold(example.get("reference_contexts"), where),
        _answers(example.get("reference_answer"), where, "reference_answer"),
    )


def load_ragas(source: Examples) -> Dataset:
    """Read a test set of Ragas: what ``to_csv``, ``to_jsonl`` and ``to_list`` give.

    ``user_input`` is the question, ``reference`` the answer, ``reference_contexts`` are gold
    passages. Of sets from before Ragas 0.2 ``question``, ``ground_truth`` and ``contexts``, if
    they are those of a test set. Contexts that were retrieved and answers that were given are not
    gold.

    Args:
        source: The path of a CSV, JSON or JSON lines file, or the rows.

    Raises:
        ValueError: If a row has no question.
    """
    questions = []
    for index, (where, row) in enumerate(_rows(source, "test set"), 1):
        name = "user_input" if "user_input" in row else "question"
        if row.get(name) is None:
            raise ValueError(
                f"{where} has no 'user_input', but {nearest_names('user_input', row)}; a test set "
                "of Ragas has user_input, reference and reference_contexts"
            )
        of_test_set = "evolution_type" in row  # before 0.2; else contexts are what was retrieved
        contexts = row.get("reference_contexts", row.get("contexts") if of_test_set else None)
        answers = next((row[n] for n in ("reference", "ground_truth") if row.get(n)), None)
        questions.append(
            Question(
                str(index),
                _text(_cell(row[name]), where, name),
                _gold(_cell(contexts), where),
                _answers(answers, where, "reference"),
            )
        )
    return Dataset(questions, name=_title(source, "test set"))


_LLAMA_INDEX_FORMS = (
    "a set of LlamaIndex has queries, corpus and relevant_docs (EmbeddingQAFinetuneDataset), "
    "examples (LabelledRagDataset), or queries and responses (QueryResponseDataset)"
)


def _title(source: object, name: str) -> str:
    return Path(source).name if isinstance(source, str | Path) else name


def _plain(source: object) -> Any:
    """Return a file, or a model of pydantic, as plain values."""
    if isinstance(source, str | Path):
        return read_json(Path(source))
    for name in ("model_dump", "dict"):
        if callable(dump := getattr(source, name, None)):
            return dump()
    return source


def _rows(source: Examples, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the examples of a source, each with the words that say where it is."""
    if not isinstance(source, str | Path):
        if isinstance(source, Mapping) or not isinstance(source, Iterable):
            raise TypeError(f"{name} are a path or a list of examples, not {source!r:.80}")
        plain = [(f"example {n}", _plain(row)) for n, row in enumerate(source, 1)]
        return [(where, check_row(row, where)) for where, row in plain]
    path = Path(source)
    if is_csv(path) or path.suffix.casefold() == ".jsonl":
        return [*read_rows(path)]
    rows = read_json(path)
    if isinstance(rows, Mapping):  # an export with the examples below a name
        rows = next((value for value in rows.values() if isinstance(value, list)), rows)
    if not isinstance(rows, list):
        raise ValueError(f"{path} is no list of examples but {rows!r:.80}")
    positions = [f"{path}, example {n}" for n in range(1, len(rows) + 1)]
    return [(where, check_row(row, where)) for where, row in zip(positions, rows, strict=True)]


def _cell(value: Any) -> Any:
    """Return a value of a CSV cell: JSON or what Python prints of it, else the text itself."""
    if not isinstance(value, str) or value[:1] not in "[{":
        return value
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return value


def _sides(row: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return inputs and outputs of an example. Twice the same where it is flat."""
    if "inputs" in row:
        outputs = _cell(row.get("outputs"))
        return _cell(row["inputs"]), {} if outputs in (None, "") else outputs
    sides: list[dict[str, Any]] = [{}, {}]
    for key, value in row.items():
        for side, heads in zip(sides, _HEADS, strict=True):
            for head in heads:
                if key.startswith(head) and len(key) > len(head):
                    side[key[len(head) :]] = _cell(value)
    if sides[0]:
        return sides[0], {key: value for key, value in sides[1].items() if value not in (None, "")}
    flat = {key: _cell(value) for key, value in row.items() if key not in _ABOUT}
    return flat, flat


_HEADS = (("inputs.", "input_", "inputs_"), ("outputs.", "output_", "outputs_"))

_ABOUT = ("id", "created_at", "modified_at", "dataset_id", "metadata", "source_run_id", "split")


def _name(
    where: str,
    values: Mapping[str, Any],
    passed: str | None,
    usual: Sequence[str],
    what: str,
    *,
    only: bool,
    required: bool = True,
) -> str:
    """Return under which name a value is: the one given, a usual one, or the only one there is."""
    if passed is not None:
        if passed not in values and required:
            raise ValueError(f"{where} has no {passed!r}, but {nearest_names(passed, values)}")
        return passed
    chosen = next((name for name in usual if name in values), "")
    if not chosen and only and len(values) == 1:
        chosen = next(iter(values))
    if chosen or not (only or required):
        return chosen
    raise ValueError(
        f"{where} has {', '.join(map(repr, values)) or 'nothing'}: say by {what}= which of them is "
        f"the {what}"
    )


def _passage_name(where: str, values: Mapping[str, Any], passed: str | None) -> str:
    if passed is not None and passed not in values:
        raise ValueError(f"{where} has no {passed!r}, but {nearest_names(passed, values)}")
    return passed or next((name for name in PASSAGE_NAMES if name in values), "")


def _content(message: Mapping[str, Any]) -> Any:
    return message.get("content", (message.get("data") or {}).get("content"))


def _text(value: Any, where: str, name: object) -> str:
    """Return a text, or that of the last message of a person."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        kinds = [str(m.get("role") or m.get("type") or m.get("id")) for m in value]
        people = [m for m, k in zip(value, kinds, strict=True) if k in ("user", "human")]
        if people:
            value = _content(people[-1])
    if not isinstance(value, str):
        raise ValueError(f"{where}: {name!r} is no text but {value!r:.80}")
    return value


def _answers(value: Any, where: str, name: str) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(item for item in value if item.strip())
    if isinstance(value, Mapping):  # a message
        value = _content(value)
    return (_text(str(value) if isinstance(value, bool | int | float) else value, where, name),)


def _gold(value: Any, where: str) -> tuple[Gold, ...]:
    """Return the passages of texts, or of documents of either framework as plain values."""
    texts: dict[str, None] = {}
    values = [] if value is None or value == "" else value if isinstance(value, list) else [value]
    for item in values:
        if isinstance(item, Mapping):
            inner = item.get("kwargs", item.get("node", item))
            item = next((inner[k] for k in ("page_content", "text", "content") if k in inner), item)
        elif not isinstance(item, str):
            item = getattr(item, "page_content", item)
        if not isinstance(item, str):
            raise ValueError(f"{where}: a passage is no text but {item!r:.80}")
        texts[item] = None
    return tuple(GoldPassage(text) for text in texts if text.strip())


SquadGold = Literal["passages", "documents", "spans"]
"""What is gold of a SQuAD-style file: the paragraph, its document, or the answer's place in it."""


def load_dataset(path: str | Path, fields: Mapping[str, str] | None = None) -> Dataset:
    """Read questions from a file or folder, by its form.

    A folder is read by ``load_beir``, ``.jsonl`` by ``load_jsonl``, ``.csv`` by ``load_csv``,
    ``.json`` by ``load_squad``. Sets that LangChain, LlamaIndex and Ragas saved, known by their
    fields, by ``load_langchain``, ``load_llama_index`` and ``load_ragas``. Take these where you
    want their options.

    Args:
        path: The file or folder.
        fields: What columns or fields are called in ``.jsonl`` and ``.csv``.

    Raises:
        FileNotFoundError: If there is no such file or folder.
        ValueError: If it is of no known form, or has no questions.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {str(path)!r} with questions")
    suffix = path.suffix.lower()
    if fields and (path.is_dir() or suffix == ".json"):
        raise ValueError(f"{path} has fields of its own; leave fields out, or convert it to .jsonl")
    if path.is_dir():
        return load_beir(path)
    if suffix not in (".jsonl", ".ndjson", ".csv", ".json"):
        raise ValueError(f"{path} is {_FORMS}")
    if suffix == ".json":
        content = read_json(path)
        first = content[0] if isinstance(content, list) and content else content
    else:
        first = next((row for _, row in read_rows(path)), {})
    if not fields and isinstance(first, Mapping) and (load := _saved_by(first)) is not None:
        return load(path)
    if suffix != ".json":
        return load_csv(path, fields) if is_csv(path) else load_jsonl(path, fields)
    if not (isinstance(first, Mapping) and "data" in first):
        raise ValueError(f"{path} is {_FORMS}")
    return load_squad(path)


_FORMS = (
    "no form of questions that is known: a folder of BEIR, .jsonl, .csv, .json in the form of "
    "SQuAD, or a set that LangChain, LlamaIndex or Ragas saved"
)


def _saved_by(row: Row) -> Callable[[Path], Dataset] | None:
    """Return what reads a file whose first row, or only object, has these fields."""
    if "user_input" in row:
        return load_ragas
    if "inputs" in row or any(name.startswith(("inputs.", "input_")) for name in row):
        return load_langchain
    if {"queries", "corpus"} <= row.keys() or {"queries", "responses"} <= row.keys():
        return load_llama_index
    examples = row.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], dict):
        return load_llama_index if "query_by" in examples[0] else load_langchain
    return None


def load_squad(path: str | Path, gold: SquadGold = "passages") -> Dataset:
    """Read a file in the form of SQuAD, also CMRC, DRCD and XQuAD.

    Each paragraph is a document of the data set (once, where paragraphs are equal), with the title
    of its article as metadata. A question that can't be answered has no gold. A span is where the
    answer's text is in the paragraph, nearest to the place that the file says (CMRC's development
    set says -1 of some). A question whose answer is not in its paragraph has none, which is logged.

    Args:
        path: The file, in UTF-8.
        gold: The paragraph as a passage, as a document, or the answers' places in it.

    Raises:
        ValueError: If the file has another form, or a question id is there twice.
    """
    path = Path(path)
    choice(gold, "gold", get_args(SquadGold))
    content = read_json(path)
    try:
        articles = content["data"]
        documents: dict[str, Document] = {}
        questions = []
        for article in articles:
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                title = article.get("title")
                document = documents.setdefault(
                    text, Document(text, {"title": title} if title else {})
                )
                for item in paragraph["qas"]:
                    answerable = not item.get("is_impossible")
                    answers = item.get("answers", []) if answerable else []
                    questions.append(
                        Question(
                            str(item["id"]),
                            item["question"],
                            _squad_gold(gold, document, answers) if answers else (),
                            tuple(dict.fromkeys(answer["text"] for answer in answers)),
                            answerable,
                        )
                    )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} has not the form of SQuAD ({type(error).__name__}: {error}); it is an object "
            "with data, paragraphs, context, qas, id, question and answers"
        ) from error
    placeless = sum(bool(question.answers) and not question.gold for question in questions)
    if placeless:
        _logger.warning(
            "%d questions of %s have an answer that is not in its paragraph, and so no gold span",
            *(placeless, path),
        )
    return Dataset(questions, documents.values(), path.name)


def load_beir(folder: str | Path, split: str = "test") -> Dataset:
    """Read a folder in the form of BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

    Documents have their ids and titles. Only queries with a line in the split are read. Documents
    with the score 0 are not relevant, and are not gold.

    Args:
        folder: The folder.
        split: The name of the file in ``qrels``.

    Raises:
        ValueError: If a file is missing or has another form.
    """
    folder = Path(folder)
    qrels = folder / "qrels" / f"{split}.tsv"
    for path in (folder / "corpus.jsonl", folder / "queries.jsonl", qrels):
        if not path.is_file():
            others = sorted(p.stem for p in (folder / "qrels").glob("*.tsv"))
            raise ValueError(
                f"there is no {path}; a folder of BEIR has corpus.jsonl, queries.jsonl and qrels, "
                f"where there are {nearest_names(split, others)}"
            )
    documents = [
        Document(
            get_text(row, "text", where),
            {"title": row["title"]} if row.get("title") else {},
            id=get_text(row, "_id", where),
        )
        for where, row in read_json_lines(folder / "corpus.jsonl")
    ]
    grades: dict[str, dict[str, float]] = {}
    for index, row in enumerate(qrels.read_text(encoding="utf-8-sig").splitlines(), 1):
        cells = row.split("\t")
        if index == 1 and not _is_numeric(cells[-1]):
            continue  # the header
        if len(cells) != 3 or not _is_numeric(cells[2]):
            raise ValueError(
                f"{qrels}, line {index} is no query id, document id and score: {row!r:.80}"
            )
        grades.setdefault(cells[0], {})[cells[1]] = float(cells[2])
    path = folder / "queries.jsonl"
    questions = [
        Question(
            identity,
            get_text(row, "text", where),
            tuple(GoldDocument(d, grade) for d, grade in grades[identity].items() if grade > 0),
        )
        for where, row in read_json_lines(path)
        for identity in [get_text(row, "_id", where)]
        if identity in grades
    ]
    existing = {question.id for question in questions}
    if lost := [identity for identity in grades if identity not in existing]:
        raise ValueError(
            f"{qrels} has {len(lost)} query ids that {path.name} lacks: "
            f"{', '.join(map(repr, lost[:5]))}"
        )
    return Dataset(questions, documents, folder.name)


def _squad_gold(
    kind: SquadGold, document: Document, answers: Iterable[Mapping[str, Any]]
) -> tuple[Gold, ...]:
    if kind == "passages":
        return (GoldPassage(document.text),)
    if kind == "documents":
        return (GoldDocument(document.id),)
    positions = ((_location(answer, document.text), answer["text"]) for answer in answers)
    spans = (GoldSpan(document.id, at, at + len(t), t) for at, t in positions if at >= 0 and t)
    return tuple(dict.fromkeys(spans))


def _location(answer: Mapping[str, Any], text: str) -> int:
    """Return where an answer is in its paragraph, -1 where it isn't: the nearest to its place."""
    expected, start = answer["text"], answer["answer_start"]
    positions = [match.start() for match in re.finditer(re.escape(expected), text)]
    return min(positions, key=lambda position: abs(position - start), default=-1)


def _is_numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
