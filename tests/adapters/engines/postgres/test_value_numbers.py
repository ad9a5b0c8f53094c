"""Numbers of values: one for each value, in the order they came, the same in every process."""

import threading
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodekin.adapters.engines.postgres import value_numbers
from nodekin.adapters.engines.postgres.value_numbers import ValueNumbers
from nodekin.nodegraph import MemoryStore, NodeStore
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore
from nodekin.nodegraph.vector_table import VectorRow


def row(number: int, **metadata: Any) -> VectorRow:
    return VectorRow(f"n{number}", number, f"d{number}", metadata, np.zeros(2, np.float32))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> NodeStore:
    return MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "graph.db")


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_numbers, "_PAGE", 3)


def test_equal_values_of_a_field_have_one_number(store: NodeStore) -> None:
    numbers = ValueNumbers(store)
    first = numbers.assign([row(1, year=1999, tag="a"), row(2, year=1999, name="a")])
    assert len({*first[0]} & {*first[1]}) == 1  # the year; "a" is another value in another field
    assert first == [sorted(value_ids) for value_ids in first]
    again = ValueNumbers(store).assign([row(2, year=1999, name="a"), row(1, tag="a", year=1999)])
    assert again == [first[1], first[0]]


def test_values_of_other_types_differ(store: NodeStore) -> None:
    values = [1, 1.0, True, "1", None, [1], (1,), date(2024, 1, 31), "2024-01-31", "\ud800", {}]
    numbers = ValueNumbers(store)
    value_ids = numbers.assign([VectorRow("n", 0, "d", {"x": v}, np.zeros(1)) for v in values])
    assert (
        len({of_row[0] if of_row[0] != value_ids[0][1] else of_row[1] for of_row in value_ids})
        >= 10
    )
    stored = [value for _, value in numbers.values("x", 0, None)]
    assert list(map(repr, stored)) == list(map(repr, values))


def test_values_come_in_order_and_only_new_ones(store: NodeStore) -> None:
    numbers, other = ValueNumbers(store), ValueNumbers(store)
    for number in range(10):
        numbers.assign([row(number, name=f"name {number}", size=number)])
    values = list(other.values("name", 0, None))
    assert [value for _, value in values] == [f"name {number}" for number in range(10)]
    assert [number for number, _ in values] == sorted(number for number, _ in values)
    last = values[6][0]
    assert list(other.values("name", last, None)) == values[7:]
    numbers.assign([row(20, name="new"), row(21, name=["name 3"])])
    assert [value for _, value in other.values("name", values[-1][0], None)] == ["new", ["name 3"]]
    assert [v for _, v in other.values("name", 0, ["name 3", "?"])] == ["name 3", ["name 3"]]
    assert [v for _, v in other.values("name", last, ["name 3"])] == [["name 3"]]
    assert list(other.values("nothing", 0, None)) == []
    assert [v for _, v in other.values(None, 0, ["d3", "d20"])] == ["d3", "d20"]
    assert len(list(other.values(None, 0, None))) == 12


def test_a_value_that_cannot_be_stored_is_an_error_and_changes_nothing(store: NodeStore) -> None:
    numbers = ValueNumbers(store)
    with pytest.raises(TypeError):
        numbers.assign([row(1, name="a"), row(2, name=object())])
    assert list(numbers.values("name", 0, None)) == []


def test_threads_give_no_number_twice(store: NodeStore) -> None:
    errors: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            numbers = ValueNumbers(store)
            for number in range(20):
                numbers.assign([row(number, shared=number, own=f"{thread} {number}")])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not errors
    numbers = ValueNumbers(store)
    shared, own = list(numbers.values("shared", 0, None)), list(numbers.values("own", 0, None))
    assert sorted(value for _, value in shared) == list(range(20))
    assert len(own) == 80
    documents = list(numbers.values(None, 0, None))
    assert len({number for number, _ in [*shared, *own, *documents]}) == 120
