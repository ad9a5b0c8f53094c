"""Cells read as the program shows them: formats of numbers, dates, durations and texts."""

import re
from pathlib import Path

import pytest

from nodekin.adapters.files.number_formats import shown_number, shown_text
from nodekin.nodegraph import NodeGraph

SPREADSHEETS = Path(__file__).parents[2] / "support" / "spreadsheets"

# As LibreOffice shows the cells of these files. Dates that could be read with the month or with
# the day first are in the form of ISO 8601.
SHOWN = {
    "zip": "01234",
    "percent": "7.5%",
    "whole percent": "50%",
    "dollars": "$1,234.50",
    "euros": "1,234.50 €",
    "euro locale": "-99.50 €",
    "pounds": "£20",
    "yuan": "¥88.80",
    "accounting": "$(1,234.50)",
    "negative in parentheses": "(5)",
    "zero word": "none",
    "thousands": "1,234,567",
    "in thousands": "1,235",
    "in millions": "12.3M",
    "two decimals": "1.01",
    "optional decimals": "2.5",
    "scientific": "1.23E-04",
    "engineering": "12.3E+3",
    "fraction": "5/8",
    "long fraction": "3 5/16",
    "sixteenths": "2 3/16",
    "phone": "(555) 123-4567",
    "social security": "012-34-5678",
    "unit": "12.5 kg",
    "area": "40 m²",
    "card": "4111 1111 1111 1111",
    "long number": "1234567890123456",
    "general long": "123456789012345",
    "date": "2026-03-15",
    "slash date": "2026-03-15",
    "dotted date": "15.03.2026",
    "long date": "March 15, 2026",
    "weekday": "Sunday",
    "month": "Mar-26",
    "chinese date": "2026年3月15日",
    "date and time": "2026-03-15 15:30",
    "time": "15:30",
    "afternoon": "3:30 PM",
    "duration": "30:05",
    "minutes": "76:00",
    "condition": "2.5K",
    "color": "-7",
    "hidden": "",
    "text number": "00123",
    "sum": "0.3",
    "negative": "-3",
    "part number": "12-0045",
}


# LibreOffice writes 15 digits into XLSX.
STORED = {"card": "4111 1111 1111 1110", "long number": "1234567890123460"}


@pytest.mark.parametrize("name", ["formats.xlsx", "formats-libreoffice.xlsx", "formats.ods"])
def test_cells_read_as_program_shows_them(name: str) -> None:
    graph = NodeGraph(SPREADSHEETS / name, progress=False)
    text = graph.nodes("ROOT")[0].text
    cells = dict(re.findall(r"^\| (.+?) \| (.*?) \|$", text, re.M))
    stored = STORED if "libreoffice" in name else {}
    assert {kind: cells[kind] for kind in SHOWN} == {**SHOWN, **stored}
    (note,) = graph.read_report.notes.values()
    assert "values hidden by their format left out: 1 (first: formats)" in note


# The values of the npm package ssf 0.11, where it agrees with the programs.
OF_SSF = [
    ("00000", "-1", "-00001"),
    ("0.0%", "0.0005", "0.1%"),
    ("#,##0.00", "-1234.567", "-1,234.57"),
    ('_("$"* #,##0.00_);_("$"* \\(#,##0.00\\);_("$"* "-"??_);_(@_)', "0", "$-"),
    ("#,##0_);[Red]\\(#,##0\\)", "-1234", "(1,234)"),
    ("##0.0E+0", "1234567890123", "1.2E+12"),
    ("# ?/?", "0.5", "1/2"),
    ("# ??/??", "-1234.567", "-1234 55/97"),
    ("?/8", "0.5", "4/8"),
    ("0.###", "5", "5."),
    ("#.##", "0", "."),
    ("#,##0,", "123456789", "123,457"),
    ("0000 0000 0000 0000", "1234", "0000 0000 0000 1234"),
    ("[hh]:mm:ss", "1.253472222222222", "30:05:00"),
    ("[s]", "0.5", "43200"),
    ("[m]:ss", "0.645833333333333", "930:00"),
    ("mmm-yy", "46096", "Mar-26"),
    ("dddd, mmmm d, yyyy", "46096", "Sunday, March 15, 2026"),
    ("h:mm AM/PM", "0.5", "12:00 PM"),
    ("h:mm:ss.000", "0.645833333333333", "15:30:00.000"),
    ("[$-409]mmmm d, yyyy;@", "46096", "March 15, 2026"),
    ('yyyy"年"m"月"d"日"', "46096", "2026年3月15日"),
    ("mmmmm", "46096", "M"),
]


@pytest.mark.parametrize(("code", "number", "shown"), OF_SSF)
def test_shown_number_equals_spreadsheet_library(code: str, number: str, shown: str) -> None:
    assert shown_number(number, code) == shown


UNSURE = [
    ("m/d/yyyy", "46096"),
    ("dd-mm-yy", "46096"),
    ("[$-407]d. mmmm yyyy", "46096"),
    ("[$-F800]dddd, mmmm dd, yyyy", "46096"),
    ("ggge", "46096"),
    ("yyyy-mm-dd", "-1"),
    ("yyyy", "99999999"),
    ("0", "1e999"),
    ("0", "nan"),
    ("[<1]0;[<2]0.0", "5"),
    ("h:mm", "1e300"),
    ("[h]:mm", "1e300"),
]


@pytest.mark.parametrize(("code", "number"), UNSURE)
def test_unclear_format_keeps_value(code: str, number: str) -> None:
    assert shown_number(number, code) is None


def test_numbers_without_format_keep_digits() -> None:
    numbers = ["12345678901234567", "0.1000000000000000055", "1E-7", "-0.00005", "1e30"]
    shown = [shown_number(number, "General") for number in numbers]
    assert shown == ["12345678901234567", "0.1", "0.0000001", "-0.00005", "1E+30"]


LARGE = [
    ("0.000", "1e22", f"1{'0' * 22}.000"),
    ("0.0 %", "1e300", f"1{'0' * 302}.0 %"),
]


@pytest.mark.parametrize(("code", "number", "shown"), LARGE)
def test_large_numbers_are_shown(code: str, number: str, shown: str) -> None:
    assert shown_number(number, code) == shown


def test_slash_without_denominator_is_text() -> None:
    assert shown_number("5", '0/" pieces"') == "5/ pieces"


def test_days_from_1904_are_shown() -> None:
    assert shown_number("1", "yyyy-mm-dd", starts_1904=True) == "1904-01-02"


@pytest.mark.parametrize(
    ("code", "shown"),
    [("@", "tea"), ('@" kg"', "tea kg"), (";;;", ""), ("0", "tea"), ("0;0", "tea")],
)
def test_texts_follow_their_section(code: str, shown: str) -> None:
    assert shown_text("tea", code) == shown
