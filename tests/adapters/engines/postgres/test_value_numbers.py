"""Numbers of metadata values: one per value, in the order of arrival, equal in all processes."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pytest

from nodekin.adapters.engines.postgres import value_numbers
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.adapters.engines.postgres.value_numbers import ValueNumbers, VectorRow


def row(number: int, **metadata: Any) -> VectorRow:
    return VectorRow(f"n{number}", number, f"d{number}", metadata, np.zeros(2, np.float32))


def opened(store: PostgresStore) -> ValueNumbers:
    return ValueNumbers(store.database, store.transaction)


@pytest.fixture
def store(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """Yield a store whose values are read in short pages."""
    monkeypatch.setattr(value_numbers, "_PAGE", 3)
    store = PostgresStore(address)
    yield store
    store.close()


def test_equal_values_of_a_field_share_a_number(store: PostgresStore) -> None:
    numbers = opened(store)
    first = numbers.assign([row(1, year=1999, tag="a"), row(2, year=1999, name="a")])
    assert len({*first[0]} & {*first[1]}) == 1  # the year; "a" is another value in another field
    assert first == [sorted(value_ids) for value_ids in first]
    again = opened(store)
    assert again.assign([row(2, year=1999, name="a"), row(1, tag="a", year=1999)]) == first[::-1]


def test_values_of_other_types_differ(store: PostgresStore) -> None:
    values = [1, 1.0, True, "1", None, [1], (1,), date(2024, 1, 31), "2024-01-31", "\ud800", {}]
    numbers = opened(store)
    assigned = numbers.assign([VectorRow("n", 0, "d", {"x": v}, np.zeros(1)) for v in values])
    assert len({number for of_row in assigned for number in of_row}) == len(values) + 1
    stored = [value for _, value in numbers.values("x", 0, None)]
    assert list(map(repr, stored)) == list(map(repr, values))


def test_only_new_values_are_read(store: PostgresStore) -> None:
    numbers, other = opened(store), opened(store)
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


def test_an_invalid_value_changes_nothing(store: PostgresStore) -> None:
    numbers = opened(store)
    with pytest.raises(TypeError):
        numbers.assign([row(1, name="a"), row(2, name=object())])
    assert list(numbers.values("name", 0, None)) == []
