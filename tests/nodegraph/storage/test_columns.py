"""The conversion of values to columns and of parameters for ``sqlite3``."""

import enum
import math
import sqlite3
from collections import OrderedDict, UserDict, namedtuple
from datetime import timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph.storage.columns import (
    MARK,
    bound,
    decode,
    encode,
    from_words,
    statements,
    to_words,
)

TEXTS = st.text(st.characters(codec=None, categories=None), max_size=8) | st.just(MARK)
ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=-5))])
HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=8)
    | st.dates()
    | st.datetimes(timezones=st.none() | ZONES).map(lambda moment: moment.replace(fold=0))
    | st.times(timezones=st.none() | ZONES).map(lambda moment: moment.replace(fold=0))
    | st.decimals(allow_nan=False)
    | st.uuids()
    | st.sampled_from([PurePosixPath("a/b"), PurePosixPath("/")]),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
VALUES = st.recursive(
    HASHABLE | st.sets(HASHABLE, max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(TEXTS, inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
    ),
    max_leaves=10,
)


def shape(value: Any) -> Any:
    """Return a value with the types of all its parts, since 1 == True == 1.0."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, [(shape(key), shape(each)) for key, each in value.items()]
    if isinstance(value, set | frozenset):
        return kind, sorted((shape(each) for each in value), key=repr)
    if isinstance(value, list | tuple):
        return kind, [shape(each) for each in value]
    return kind, repr(value)


@settings(max_examples=amount(50, 150))
@given(VALUES)
def test_decode_restores_each_value(value: Any) -> None:
    text = encode(value)
    assert shape(decode(text)) == shape(value)
    assert encode(decode(text)) == text


@given(st.sets(HASHABLE, max_size=6))
def test_equal_sets_have_equal_texts(values: set[Any]) -> None:
    assert encode(values) == encode(set(reversed(list(values))))


def test_special_numbers_are_restored() -> None:
    values = decode(encode([float("nan"), float("inf"), -float("inf"), -0.0, Decimal("sNaN")]))
    assert math.isnan(values[0])
    assert values[1:3] == [math.inf, -math.inf]
    assert str(values[3]) == "-0.0"
    assert str(values[4]) == "sNaN"


class Colour(str, enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    LARGE = 3


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, "red"),
        (Size.LARGE, 3),
        ({Colour.RED: 1}, {"red": 1}),
        (Point(1, 2), (1, 2)),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (UserDict(a=(1,)), {"a": (1,)}),
        (np.float32(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(True), True),
        (np.str_("tea"), "tea"),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (Path("a") / "b", PurePosixPath("a/b")),
    ],
)
def test_subclasses_become_their_base_type(value: Any, plain: Any) -> None:
    assert shape(decode(encode(value))) == shape(plain)


@pytest.mark.parametrize("value", [object(), [object()], {"a": {1: object()}}, (1j,), len, object])
def test_unsupported_value_raises(value: Any) -> None:
    with pytest.raises(TypeError, match="can't be kept in a file; give a text"):
        encode(value)


@given(st.text(st.characters(codec=None, categories=None)) | st.text("绿茶\ud83d\ude00😀"))
def test_texts_of_nodes_are_restored(text: str) -> None:
    assert from_words(to_words(text)) == text


def test_chinese_takes_two_bytes_per_character() -> None:
    assert len(to_words("绿茶" * 100)) <= 401


ROWS = [
    (1, b"a", None, "x"),
    (2, None, None, "y"),
    (3, b"", 1.5, None),
    (4, b"b", None, "z"),
]

INSERT = "INSERT INTO items (key, id, size, name) VALUES (?,?,?,?)"


@pytest.mark.parametrize("count", [0, 1, 4, 10_000])
def test_statements_insert_all_rows(count: int) -> None:
    rows = [(key, *ROWS[key % len(ROWS)][1:]) for key in range(count)]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE items (key INTEGER PRIMARY KEY, id BLOB, size REAL, name TEXT)")
    for statement, values in statements(INSERT, rows):
        db.executemany(statement, values)
    assert db.execute("SELECT * FROM items ORDER BY key").fetchall() == rows
    db.close()


def test_statements_keep_other_statements() -> None:
    update = "UPDATE items SET id = ? WHERE key = ?"
    ((statement, values),) = statements(update, [(b"a", 1), (None, 2)])
    assert statement == update
    assert list(values) == [[bytearray(b"a"), 1], [None, 2]]


def test_bound_keeps_values_of_other_types() -> None:
    assert bound([1, "a", None, 0.5, b"\xff"]) == [1, "a", None, 0.5, bytearray(b"\xff")]
