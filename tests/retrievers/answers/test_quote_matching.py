"""The quotations in answers, by the marks around them, and their status."""

# ruff: noqa: E501

import pytest

from nodekin.retrievers import check_quotes

SOURCES = [
    "Green tea is steamed. It does not grow in non-smoking areas, at 5-10 people per hut. "
    "'Tis the season of rock 'n' roll, said the dogs' owner in the '90s. It's Bob's tea.",
    "绿茶不是发酵茶。它在日本生长，禁止在室内烘干，每年产量五百万吨。",
]

# Answer, then "status: text" for each quotation. Without quotations: "-".
FORMS = """
“Green tea is steamed” [1]. | exact: Green tea is steamed
"Green tea is steamed" [1]. | exact: Green tea is steamed
'Green tea is steamed' [1]. | exact: Green tea is steamed
‘Green tea is steamed’ [1]. | exact: Green tea is steamed
«Green tea is steamed» [1]. | exact: Green tea is steamed
»Green tea is steamed« [1]. | exact: Green tea is steamed
‹Green tea is steamed› [1]. | exact: Green tea is steamed
›Green tea is steamed‹ [1]. | exact: Green tea is steamed
„Green tea is steamed“ [1]. | exact: Green tea is steamed
„Green tea is steamed” [1]. | exact: Green tea is steamed
‚Green tea is steamed‘ [1]. | exact: Green tea is steamed
”Green tea is steamed” [1]. | exact: Green tea is steamed
“Green tea is steamed" [1]. | exact: Green tea is steamed
"Green tea is steamed” [1]. | exact: Green tea is steamed
＂Green tea is steamed＂ [1]. | exact: Green tea is steamed
＇Green tea is steamed＇ [1]. | exact: Green tea is steamed
「Green tea is steamed」 [1]. | exact: Green tea is steamed
『Green tea is steamed』 [1]. | exact: Green tea is steamed
｢Green tea is steamed｣ [1]. | exact: Green tea is steamed
〝Green tea is steamed〞 [1]. | exact: Green tea is steamed
``Green tea is steamed'' [1]. | exact: Green tea is steamed
<q>Green tea is steamed</q> [1]. | exact: Green tea is steamed
&quot;Green tea is steamed&quot; [1]. | exact: Green tea is steamed
&ldquo;Green tea is steamed&rdquo; [1]. | exact: Green tea is steamed
&laquo;Green tea is steamed&raquo; [1]. | exact: Green tea is steamed
“green tea is STEAMED” [1]. | same_letters: green tea is STEAMED
“Green  tea is steamed.” [1]. | same_letters: Green  tea is steamed.
“Green tea is roasted” [1]. | not_found: Green tea is roasted
'Green tea is roasted' [1]. | not_found: Green tea is roasted
‹Green tea is roasted› [1]. | not_found: Green tea is roasted
＂Green tea is roasted＂ [1]. | not_found: Green tea is roasted
“Green tea is roasted" [1]. | not_found: Green tea is roasted
<q>Green tea is roasted</q> [1]. | not_found: Green tea is roasted
“It does … grow in non-smoking areas” [1]. | shortened: It does … grow in non-smoking areas
“It does ... grow” [1]. | shortened: It does ... grow
“It does [...] grow” [1]. | shortened: It does [...] grow
“It does (…) grow” [1]. | shortened: It does (…) grow
“Green tea … steamed” [1]. | shortened: Green tea … steamed
“Green tea is steamed. … It's Bob's tea.” [1]. | same_letters: Green tea is steamed. … It's Bob's tea.
“smoking areas” [1]. | not_found: smoking areas
“non-smoking areas” [1]. | exact: non-smoking areas
“10 people” [1]. | not_found: 10 people
“5-10 people” [1]. | exact: 5-10 people
“It grows in” [1]. | not_found: It grows in
“It does not grow” [1]. | exact: It does not grow
“it does grow” [1]. | not_found: it does grow
“绿茶不是发酵茶” [2]. | exact: 绿茶不是发酵茶
「绿茶不是发酵茶」[2]。 | exact: 绿茶不是发酵茶
“绿茶……发酵茶” [2]. | shortened: 绿茶……发酵茶
“绿茶是发酵茶” [2]. | not_found: 绿茶是发酵茶
“绿茶不是发酵茶。” [2]. | exact: 绿茶不是发酵茶。
“在室内烘干” [2]. | exact: 在室内烘干
“万吨” [2]. | not_found: 万吨
“五百万吨” [2]. | exact: 五百万吨
“绿茶不是发酵茶” [1]. | other_source: 绿茶不是发酵茶
It sings 'rock 'n' roll' [1]. | exact: rock 'n' roll
'Tis the season of tea [1]. | -
It plays rock 'n' roll and 'bout tea, 'til noon [1]. | -
It was the season, 'tis said, of the '90s and the '80s [1]. | -
The dogs' owner and Bob's friends' huts are steamed [1]. | -
It's Bob's tea, isn't it [1]. | -
The hut is 5' 10" high and 6' wide [1]. | -
‘'Tis the season’ [1]. | exact: 'Tis the season
“'Tis the season of rock 'n' roll” [1]. | exact: 'Tis the season of rock 'n' roll
He said 'Green tea is steamed', and 'It's Bob's tea' [1]. | exact: Green tea is steamed; exact: It's Bob's tea
The ‘90s are over, ’tis true [1]. | -
""".strip().split("\n")


@pytest.mark.parametrize("row", FORMS)
def test_quotations_in_all_marks_have_their_status(row: str) -> None:
    text, expected = row.split(" | ")
    quotes = [quote for quote in check_quotes(text, SOURCES).quotes if quote.quoted]
    found = "; ".join(f"{quote.status}: {quote.text}" for quote in quotes)
    assert (found or "-") == expected
    wrong = [quote for quote in quotes if quote.status not in ("exact", "same_letters")]
    assert bool(check_quotes(text, SOURCES).notes) == bool(wrong)


def test_forms_of_quotations_are_sixty() -> None:
    assert len(FORMS) >= 60
