"""Read the evaluation sets of LangChain, LlamaIndex and Ragas, as they save them."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ..validation import choice
from .dataset import Dataset, Gold, GoldDocument, GoldPassage, Question

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
        source: LangSmith's examples (``client.list_examples(...)``) or dicts of the same form; or
            the path of a file with them: JSON, JSON lines, or a CSV file, whose columns are
            ``inputs`` and ``outputs``, or ``input_question``, ``inputs.question`` and so on, or
            the names themselves.
        question: Under which name the question is; None where there is one input, or one of
            ``QUESTION_NAMES``.
        answer: The same of the answer, and ``ANSWER_NAMES``; examples need none.
        passages: The same of gold passages, in outputs or inputs, and ``PASSAGE_NAMES``.

    Raises:
        ValueError: If an example has another form, or it is not clear which name is meant.
    """
    names = {"question": question, "answer": answer, "passages": passages}
    questions = []
    for number, (where, row) in enumerate(_rows(source, "examples"), 1):
        inputs, outputs = _sides(row)
        if not isinstance(inputs, Mapping) or not isinstance(outputs, Mapping):
            raise ValueError(
                f"{where} has no inputs and outputs but {row!r:.120}; an example is an object like "
                '{"inputs": {"question": ...}, "outputs": {"answer": ...}}'
            )
        flat = inputs is outputs
        passage_name = _passage_name(where, inputs, outputs, names["passages"])
        chosen = _name(where, inputs, names["question"], QUESTION_NAMES, "question", not flat)
        others = {k: v for k, v in outputs.items() if k != passage_name or k == names["answer"]}
        found = None
        if answer is not None or others:
            found = _name(where, others, answer, ANSWER_NAMES, "answer", not flat, required=False)
        side = outputs if passage_name in outputs else inputs
        questions.append(
            Question(
                str(row.get("id") or number),
                _text(inputs[chosen], where, chosen),
                _gold(_passages(side.get(passage_name), where) if passage_name else []),
                tuple(_answers(others.get(found), where, found)) if found else (),
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
        questions = [
            Question(
                str(number),
                _text(example.get("query"), f"{title}, example {number}", "query"),
                _gold(_passages(example.get("reference_contexts"), f"{title}, example {number}")),
                tuple(_answers(example.get("reference_answer"), title, "reference_answer")),
            )
            for number, example in enumerate(data["examples"], 1)
        ]
        return Dataset(questions, name=title)
    queries = data.get("queries")
    corpus, relevant = data.get("corpus"), data.get("relevant_docs")
    responses = data.get("responses")
    if isinstance(queries, Mapping) and isinstance(responses, Mapping):
        return Dataset(
            [
                Question(str(i), _text(text, title, i), (), tuple(filter(None, [responses.get(i)])))
                for i, text in queries.items()
            ],
            name=title,
        )
    if not all(isinstance(part, Mapping) for part in (queries, corpus, relevant)):
        raise ValueError(f"{title} has {', '.join(map(repr, data))}; {_LLAMA_INDEX_FORMS}")
    questions = []
    for identity, text in queries.items():  # type: ignore[union-attr]
        ids = relevant.get(identity, [])  # type: ignore[union-attr]
        if missing := [one for one in ids if one not in corpus]:  # type: ignore[operator]
            raise ValueError(
                f"{title}: node {missing[0]!r} is relevant for query {identity!r}, and not in the "
                "corpus"
            )
        items: Sequence[Gold] = [
            GoldPassage(corpus[one]) if gold == "passages" else GoldDocument(one)  # type: ignore[index]
            for one in ids
        ]
        questions.append(Question(str(identity), _text(text, title, identity), tuple(items)))
    documents = [Document(text, id=one) for one, text in corpus.items()]  # type: ignore[union-attr]
    return Dataset(questions, documents, title)


def load_ragas(source: Examples) -> Dataset:
    """Read a test set of Ragas: what ``to_csv``, ``to_jsonl`` and ``to_list`` give.

    ``user_input`` is the question, ``reference`` the answer, ``reference_contexts`` are gold
    passages; of sets from before Ragas 0.2 ``question``, ``ground_truth`` and ``contexts``, if
    they are those of a test set. Contexts that were retrieved and answers that were given are not
    gold.

    Args:
        source: The path of a CSV, JSON or JSON lines file, or the rows.

    Raises:
        ValueError: If a row has no question.
    """
    questions = []
    for number, (where, row) in enumerate(_rows(source, "test set"), 1):
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
                str(number),
                _text(_cell(row[name]), where, name),
                _gold(_passages(_cell(contexts), where)),
                tuple(_answers(answers, where, "reference")),
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
        path = Path(source)
        try:
            return json.loads(path.read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise ValueError(f"{path} is no JSON: {error}") from error
    for name in ("model_dump", "dict"):
        if callable(dump := getattr(source, name, None)):
            return dump()
    return source


def _rows(source: Examples, name: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the examples of a source, each with the words that say where it is."""
    if not isinstance(source, str | Path):
        if isinstance(source, Mapping) or not isinstance(source, Iterable):
            raise TypeError(f"{name} are a path or a list of examples, not {source!r:.80}")
        return [_checked(f"example {n}", _plain(row)) for n, row in enumerate(source, 1)]
    path = Path(source)
    if path.suffix.casefold() == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            return [(f"{path}, line {reader.line_num}", row) for row in reader]
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix.casefold() == ".jsonl":
        lines = [(f"{path}, line {n}", line) for n, line in enumerate(text.split("\n"), 1)]
        return [_checked(at, _json(line, at)) for at, line in lines if line.strip()]
    rows = _json(text, str(path))
    if isinstance(rows, Mapping):  # an export with the examples below a name
        rows = next((value for value in rows.values() if isinstance(value, list)), rows)
    if not isinstance(rows, list):
        raise ValueError(f"{path} is no list of examples but {rows!r:.80}")
    return [_checked(f"{path}, example {n}", row) for n, row in enumerate(rows, 1)]


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON: {error}") from error


def _checked(where: str, row: object) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(row, Mapping):
        raise ValueError(f"{where} is no object but {row!r:.80}")
    return where, row


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
    """Return inputs and outputs of an example; twice the same where it is flat."""
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
    given: str | None,
    usual: Sequence[str],
    what: str,
    only: bool,
    *,
    required: bool = True,
) -> str:
    """Return under which name a value is: the one given, a usual one, or the only one there is."""
    if given is not None:
        if given not in values and required:
            raise ValueError(f"{where} has no {given!r}, but {nearest_names(given, values)}")
        return given
    for name in usual:
        if name in values:
            return name
    if only and len(values) == 1:
        return next(iter(values))
    if not only and not required:
        return ""
    raise ValueError(
        f"{where} has {', '.join(map(repr, values)) or 'nothing'}: say by {what}= which of them is "
        f"the {what}"
    )


def _passage_name(
    where: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], given: str | None
) -> str | None:
    if given is not None:
        if given not in outputs and given not in inputs:
            names = [*outputs, *inputs]
            raise ValueError(f"{where} has no {given!r}, but {nearest_names(given, names)}")
        return given
    return next((name for name in PASSAGE_NAMES if name in outputs or name in inputs), None)


def _text(value: Any, where: str, name: object) -> str:
    """Return a text, or that of the last message of a person."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        kinds = [str(m.get("role") or m.get("type") or m.get("id")) for m in value]
        people = [m for m, k in zip(value, kinds, strict=True) if k in ("user", "human")]
        if people:
            value = people[-1].get("content", (people[-1].get("data") or {}).get("content"))
    if not isinstance(value, str):
        raise ValueError(f"{where}: {name!r} is no text but {value!r:.80}")
    return value


def _answers(value: Any, where: str, name: str) -> list[str]:
    if value is None or value == "":
        return []
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return [one for one in value if one.strip()]
    if isinstance(value, Mapping):  # a message
        value = value.get("content", (value.get("data") or {}).get("content"))
    if isinstance(value, bool | int | float):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError(f"{where}: {name!r} is no text but {value!r:.80}")
    return [value]


def _passages(value: Any, where: str) -> list[str]:
    """Return the texts of passages: texts, or documents of either framework as plain values."""
    if value is None or value == "":
        return []
    texts = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Mapping):
            inner = one.get("kwargs", one.get("node", one))
            one = next((inner[k] for k in ("page_content", "text", "content") if k in inner), one)
        elif not isinstance(one, str):
            one = getattr(one, "page_content", one)
        if not isinstance(one, str):
            raise ValueError(f"{where}: a passage is no text but {one!r:.80}")
        texts.append(one)
    return texts


def _gold(passages: Iterable[str]) -> tuple[Gold, ...]:
    return tuple(GoldPassage(text) for text in dict.fromkeys(passages) if text.strip())
