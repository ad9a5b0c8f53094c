"""Names in several spellings: the default search finds each by the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import as_retriever
from nodekin.retrievers.analysis.identifiers import identifiers
from nodekin.retrievers.analysis.normal_form import normalized

OTHERS = ["Room 5 is free. 5 chairs, 75 litres, 250 steps.", "Plug the cable in.", "Tea is free."]


def terms(text: str) -> list[str]:
    return [term for term, _ in identifiers(normalized(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("version 3.1.0", "3.1.0"),
        ("v3.1.0rc1", "v3.1.0rc1 3.1.0 3 0 rc 1"),
        ("10.3.0.7:8080", "10.3.0.7:8080 10.3.0.7"),
        ("CVE-2024-1234", "cve2024-1234 2024-1234 cve20241234"),
        ("Wi-Fi, e-mail, U.S.A., O'Brien", "wifi email usa obrien"),
        ("E1234-AB and X900", "e1234ab 1234 900"),
        ("1,106,500 and 1 106 500", "1.106.500 1106500 1106500"),
        ("1'106'500.50", "1'106'500.50 500.50 1106500.50"),
        ("5 GHz, 3 \N{MICRO SIGN}m", "5ghz 3\N{GREEK SMALL LETTER MU}m"),
        ("19 % 19%", "19% 19%"),
        ("9 March 2026, March 9, 2026", "2026-03-09 2026-03-09"),
        ("9. März 2026; 9 de marzo de 2026", "2026-03-09 2026-03-09"),
        ("2026年3月9日", "2026-03-09"),
        ("09.03.2026", "09.03.2026 2026-03-09"),
        ("3/9/2026", "3/9/2026 2026-09-03 2026-03-09"),
        ("2³⁰ bytes", "2^30"),
        ("tea ☕", "☕"),
        ("i.e. green, e.g. tea and/or milk", ""),
        ("well, 12 chairs; don't", ""),
        ("a3f9c2d4e5b6a7", ""),
    ],
)
def test_names_have_additional_terms(text: str, expected: str) -> None:
    assert sorted(terms(text)) == sorted(expected.split())


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("E105", "E-105: pump blocked."),
        ("AK47", "本店出售AK-47模型。"),
        ("WiFi password", "The Wi-Fi password is on the door."),
        ("plug-in", "Install the plugin from the store."),
        ("sign off", "Every commit needs a dco-signoff line."),
        ("1,106,500", "The budget is 1106500 dollars."),
        ("250000", "Budget: 250.000 Euro."),
        ("5 GHz", "The 5GHz band is used."),
        ("75kWh", "The battery holds 75 kWh."),
        ("U.S.A.", "The USA exports."),
        ("2026-03-09", "Meeting of March 9, 2026."),
        ("123", "الرقم ١٢٣"),
        ("台湾", "臺灣的茶"),
        ("電腦", "我的电脑"),
        ("ﻣﺼﺮ", "مصر"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("☕", "Coffee ☕ at noon."),
        ("Tea", "Ｔｅａ™ of 2020."),
    ],
)
def test_names_are_found_in_other_spellings(query: str, text: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add([*OTHERS[: 2 if query == "Tea" else 3], text])
    assert as_retriever(graph)(query)[0].text == text


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("3.1.0", ["Release 1.3.0.", "Release 0.1.3 and 3.0.1.", "Release 3.1.0 adds exports."]),
        ("10.3.0.7", ["Host 10.0.3.7.", "Host 7.0.10.3.", "Host 10.3.0.7 is a scanner."]),
        ("2026-03-09?", ["Meeting of 2026-09-03.", "A meeting on the ninth: 2026-03-09."]),
        (
            "E1234-AB",
            ["Stock: AB 1, E1234 2, AB 3, E1234 4.", "Kit E1234-AB: three gaskets for two weeks."],
        ),
    ],
)
def test_whole_name_ranks_before_its_parts(query: str, texts: list[str]) -> None:
    for order in (texts, texts[::-1]):
        graph = NodeGraph(progress=False)
        graph.add(order)
        first, *others = as_retriever(graph)(query)
        assert first.text == texts[-1]
        assert all(first.score > other.score for other in others)


def test_five_names_per_long_passage_are_distinguished() -> None:
    filler = (
        "the pump and the valve of a motor with a small switch in the main panel " * 10
    ).split()
    names, documents = [], []
    for i in range(60):
        of_passage = [
            f"{i % 5}.{i % 7}.{i}",
            f"2026-{i % 12 + 1:02}-{i % 28 + 1:02}",
            f"E-{i + 100}",
        ]
        of_passage += [f"{i + 1},{i:03}", f"{i + 1} kW"]
        words = [*filler]
        for number, name in enumerate(of_passage):
            words.insert(number * 25, name)
        documents.append(Document(" ".join(words), id=str(i)))
        names += [(name, str(i)) for name in (of_passage[0], of_passage[2], of_passage[3])]
        names += [(of_passage[2].replace("-", ""), str(i)), (f"{i + 1}kW", str(i))]
    graph = NodeGraph(progress=False)
    graph.add(documents)
    search = as_retriever(graph)
    right = [search(f"where is {name} mentioned?")[0].node.document_id == i for name, i in names]
    assert sum(right) >= 0.97 * len(right)


@given(st.text("aB19.-/:'’,% \u00b2é茶"))
def test_any_text_has_terms_of_limited_length(text: str) -> None:
    assert sum(map(len, terms(text))) <= 12 * len(normalized(text)) + 12


@pytest.mark.parametrize("unit", ["a", "1", "a1", "a-", "1.", "1,", "1 ", "茶1", "é-", "o'"])
def test_long_names_take_linear_time(unit: str) -> None:
    assert len(terms(unit * 50_000)) <= 200_000
