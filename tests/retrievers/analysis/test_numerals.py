"""Numbers are found in every usual spelling, and other numbers are not taken for them."""

from itertools import permutations

import pytest

from nodekin import NodeGraph, as_retriever
from nodekin.retrievers.analysis.identifiers import identifiers
from nodekin.retrievers.analysis.normal_form import normalized
from nodekin.retrievers.analysis.numerals import (
    chinese_numbers,
    grouped_numbers,
    roman_numbers,
)


def _terms(text: str) -> set[str]:
    return {term for term, _ in identifiers(normalized(text))}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("第十二条", ["12"]),
        ("第三百二十五号", ["325"]),
        ("二〇二六年", ["2026"]),
        ("二零二六年", ["2026"]),
        ("三千万元", ["30000000"]),
        ("3000万元", ["30000000"]),
        ("3千万元", ["30000000"]),
        ("1.5亿", ["150000000"]),
        ("一亿二千万", ["120000000"]),
        ("2亿3000万", ["230000000"]),
        ("两千零五", ["2005"]),
        ("十万", ["100000"]),
        ("三百二", ["320"]),
        ("一万五", ["15000"]),
        ("壹佰贰拾元", ["120"]),
        ("百分之五", ["5%"]),
        ("百分之三点五", ["3.5%"]),
        ("千分之二", ["2‰"]),
        ("第三", ["3"]),
        ("三月五日", ["3", "5"]),
        ("十月", ["10"]),
        ("千万别去", []),
        ("万一", []),
        ("十分好", []),
        ("几十年", []),
        ("三五个人", []),
        ("三个", []),
    ],
)
def test_chinese_numbers_have_digits(text: str, numbers: list[str]) -> None:
    assert [number for number, _ in chinese_numbers(text)] == numbers
    traditional = text.translate(str.maketrans("条号万亿两贰", "條號萬億兩貳"))
    assert [number for number, _ in chinese_numbers(normalized(traditional))] == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("World War II", ["2"]),
        ("Chapter V of Louis XIV.", ["5", "14"]),
        ("Глава III и Часть XXXIX", ["3", "39"]),
        ("Élisabeth\xa0II", ["2"]),
        ("Part I and I am", []),
        ("the xx and part ii", []),
        ("Vitamin C, Part XL, Type IIII, MIX", []),
        ("Louis XIV's", []),
    ],
)
def test_roman_numbers_follow_capitalized_words(text: str, numbers: list[str]) -> None:
    assert [number for number, _ in roman_numbers(text)] == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+49 30 1234567", "49301234567"),
        ("+49 (0)30 12 34 567", "49301234567"),
        ("0049-30-1234567", "49301234567"),
        ("(030) 1234567", "0301234567"),
        ("01.23.45.67.89", "0123456789"),
        ("(555) 123-4567", "5551234567"),
        ("138 0013 8000", "13800138000"),
        ("010-12345678", "01012345678"),
        ("4111 1111 1111 1111", "4111111111111111"),
        ("978-3-16-148410-0", "9783161484100"),
        ("978 3 16 148410 0", "9783161484100"),
        ("0-306-40615-X", "030640615x"),
        ("DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
        ("GB82 WEST 1234 5698 7654 32", "gb82west12345698765432"),
        ("AK-12-345X", "ak12345x"),
    ],
)
def test_grouped_numbers_are_joined(text: str, number: str) -> None:
    assert number in _terms(f"Write down {text} for us.")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+49 (30) 1234567", "49301234567"),
        ("(+49301234567)", "49301234567"),
        ("since 20260309", "2026-03-09"),
        ("1234567.00", "1234567"),
    ],
)
def test_long_numbers_are_found_at_any_place(text: str, number: str) -> None:
    assert number in _terms(text)


@pytest.mark.parametrize(
    "text",
    ["1990-1995", "2026-03-09", "1990 1991 1992", "192.168.100.200", "3.1.0", "0.5 0.75 0.25"],
)
def test_other_digits_are_not_joined(text: str) -> None:
    assert not list(grouped_numbers(text))


@pytest.mark.parametrize(
    "text",
    [
        *("9 March 2026", "March 9, 2026", "Mar 9 2026", "9th of March 2026", "March 9th, 2026"),
        *("9-Mar-2026", "09/03/2026", "2026-03-09", "20260309", "Mon, 9 Mar 2026", "2026 March 9"),
        *("9. März 2026", "09.03.2026", "9.3.2026", "09.03.26", "9. Mrz. 2026"),
        *("9 mars 2026", "le 9 mars 2026", "9/3/2026"),
        *("9 de marzo de 2026", "9 de marzo del 2026", "9-mar-2026"),
        *("2026年3月9日", "二〇二六年三月九日", "2026/3/9", "2026.3.9", "2026年03月09日"),
        *("令和8年3月9日", "2026년 3월 9일", "2026. 3. 9.", "2026-3-9", "民國115年3月9日"),
    ],
)
def test_dates_have_one_form(text: str) -> None:
    terms = {*_terms(f"On {text} it rained."), *text.split()}
    assert "2026-03-09" in terms


def test_ambiguous_forms_match_both_readings() -> None:
    assert {"2026-04-03", "2026-03-04"} <= _terms("on 03/04/2026")
    assert {"1106", "1.106"} <= _terms("it is 1.106 long")


@pytest.mark.parametrize(
    "text", ["1,106,500", "1,106,500.00", "1.106.500,00", "1 106 500", "1106500.00", "11,06,500"]
)
def test_amounts_have_one_form(text: str) -> None:
    assert "1106500" in _terms(f"It costs {text} euros.")


KINDS = {
    "phone": (["+49 30 1234567", "+49301234567", "0049 30 12 34 567"], "+49 30 7654321"),
    "IBAN": (["DE89 3704 0044 0532 0130 00", "DE89370400440532013000"], "DE12 5001 0517 0648 48"),
    "card": (["4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111"], "4111 1111 1111"),
    "ISBN": (["978-3-16-148410-0", "9783161484100"], "978-3-16-148411-7"),
    "amount": (["1106500", "1,106,500", "1,106,500.00"], "1,106,300"),
    "date": (["2026-03-09", "9 March 2026", "20260309", "2026年3月9日"], "2026-09-03"),
    "article": (["第十二条", "第12条"], "第二十条"),
    "share": (["百分之五", "5%"], "百分之八"),
    "part": (["Part II", "Part 2"], "Part III"),
    "code": (["AK-12-345X", "AK12345X"], "AK-12-354X"),
}


@pytest.mark.parametrize(
    ("stored", "asked", "other"),
    [
        (stored, asked, other)
        for spellings, other in KINDS.values()
        for stored, asked in permutations(spellings, 2)
    ],
)
def test_search_finds_other_spelling_first(stored: str, asked: str, other: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add([f"Write down {other} for them.", f"Write down {stored} for us."])
    first, *others = as_retriever(graph)(asked, top_k=2)
    assert first.text.endswith("for us.")
    assert all(result.score < first.score for result in others)


@pytest.mark.parametrize(
    ("name", "other"),
    [("3.1.0", "1.3.0"), ("Part II", "Part III"), ("v1.11", "v11.1"), ("第十二条", "第二十一条")],
)
def test_different_names_stay_different(name: str, other: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add([f"Write down {other}, please.", f"Write down {name}, please."])
    first, *others = as_retriever(graph)(name, top_k=2)
    assert name in first.text
    assert all(result.score < first.score for result in others)
