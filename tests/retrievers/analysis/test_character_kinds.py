"""The fast tests of a text find all texts that need a search."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.analysis.character_kinds import (
    has_camel_case,
    kinds_of,
    may_have_chinese,
    may_have_codes_apart,
    may_have_foreign_digits,
)

CHARACTERS = [chr(code) for code in range(0x80, sys.maxunicode + 1)]


@given(st.text("aB1_ é大"))
def test_camel_case_is_a_capital_after_a_letter(text: str) -> None:
    expected = re.search("[a-z][A-Z]|[A-Z][A-Z][a-z]", text) is not None
    assert has_camel_case(kinds_of(text)) == expected


@given(st.text("aB1 é大"))
def test_codes_apart_are_a_capital_and_a_digit(text: str) -> None:
    expected = re.search("[A-Z] [0-9]", text) is not None
    assert may_have_codes_apart(kinds_of(text)) == expected


def test_digits_of_all_scripts_are_found() -> None:
    normal = [one for one in CHARACTERS if unicodedata.is_normalized("NFKC", one)]
    digits = [one for one in normal if one.isdecimal()]
    assert len(digits) > 500
    assert all(may_have_foreign_digits(kinds_of(digit)) for digit in digits)


def test_chinese_characters_are_found() -> None:
    named = [one for one in CHARACTERS if unicodedata.name(one, "").startswith("CJK UNIFIED")]
    assert len(named) > 20_000
    assert all(may_have_chinese(kinds_of(character)) for character in named)


@pytest.mark.parametrize("text", ["Größe – размер", "Αθήνα", "שלום", "“5 €”"])
def test_european_texts_need_no_search_for_digits(text: str) -> None:
    kinds = kinds_of(text)
    assert not may_have_foreign_digits(kinds)
    assert not may_have_chinese(kinds)


def test_lone_surrogate_has_a_kind() -> None:
    assert kinds_of("a\ud800")[:1] == b"a"
