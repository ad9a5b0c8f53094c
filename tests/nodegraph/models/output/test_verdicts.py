"""Numbered yes-or-no decisions in the forms that models use."""

import pytest

from nodekin.nodegraph.models.output.verdicts import read_verdicts

# Each row has a reply and its decisions: y for yes, n for no.
DECISIONS = [
    ("1. Un-supported\n2. Non-supported", "nn"),
    ("1. Supported? Not really.\n2. NOT-SUPPORTED", "nn"),
    ("1. 不完全支持\n2. 支持", "ny"),
    ("Tea is green – yes\nTea is blue - no", "yn"),
    ("1. yes\n2. no\n3. yes", "yny"),
    (
        (
            "Here is my evaluation:\n\n1. **Yes** – The context names Laura Kim as the "
            "founder.\n2. **No** – The year 2011 does not appear; no date is given at "
            "all.\n\nLet me know if you'd like a more detailed analysis."
        ),
        "yn",
    ),
    ("yes, no, yes", "yny"),
    (
        (
            '<think>\nStatement 1: HQ in Berlin. Context: "moved to Munich in 2019". So '
            'no.\nStatement 2: 400 employees. Context says "about 400 people". yes.\n'
            "</think>\n1: no\n2: yes"
        ),
        "ny",
    ),
    ('{"1": true, "2": false}', "yn"),
    (
        (
            "1. The statement says that Mont Blanc is 4,806 m high. The context says 4,806 "
            "m, so this is supported. Verdict: yes\n"
            "2. The statement says it was first climbed in 1788. The context says 1786, so "
            "this is not supported. Verdict: no"
        ),
        "yn",
    ),
    ("1) Supported\n2) Not supported", "yn"),
    ("All three statements are supported by the context:\n1. Yes\n2. Yes\n3. Yes", "yyy"),
    (
        (
            "**Statement 1:** Alexander Bell patented the telephone in 1876.\n"
            "**Verdict:** Yes\n**Reason:** The passage gives this date.\n"
            "\n**Statement 2:** Bell was born in Canada.\n"
            "**Verdict:** No\n**Reason:** He was born in Edinburgh; yes, he later lived in "
            "Canada, but that is another thing."
        ),
        "yn",
    ),
    ("[yes, yes]", "yy"),
    ("1. 是\n2. 否\n3. 是", "yny"),
    (
        (
            "陈述1：支持。上下文指出弗莱明于1928年发现青霉素。\n"
            "陈述2：不支持。上下文未提及诺贝尔奖的年份。"
        ),
        "yn",
    ),
    ("1、yes\n2、no", "yn"),
    (
        (
            "<think>\n第1条:会议在杭州,文中说的是杭州,正确。第2条:参会人数两千,文中是两百,"
            "错误。\n</think>\n\n1. 正确\n2. 错误"
        ),
        "yn",
    ),
    ("（1）否（文中只提到有线快充）\n（2）是（文中提到防水）", "ny"),
    ("陈述1：支持。上下文指出。\n陈述2：不支持。上下文未提及。", "yn"),
    ("1. 正确\n2. 错误", "yn"),
    (
        (
            "**Statement 1:** Alexander Bell patented the telephone in 1876.\n"
            "**Verdict:** Yes\n**Reason:** The passage gives this date.\n"
            "\n**Statement 2:** Bell was born in Canada.\n"
            "**Verdict:** No\n**Reason:** He was born in Edinburgh; yes, he later lived in "
            "Canada."
        ),
        "yn",
    ),
    (
        (
            "| # | Statement | Verdict |\n|---|---|---|\n"
            "| 1 | Tea is green. | Yes |\n| 2 | Tea is blue. | No |"
        ),
        "yn",
    ),
    (
        (
            "| Statement | Supported? | Reason |\n|---|---|---|\n"
            "| 1 | ✅ | it is there |\n| 2 | ❌ | missing |"
        ),
        "yn",
    ),
    ("| 编号 | 结论 | 理由 |\n|---|---|---|\n| 1 | 支持 | 有 |\n| 2 | 不支持 | 无 |", "yn"),
    ("number,verdict\n1,yes\n2,no", "yn"),
    ("1. ✓\n2. ✗\n3. ✓", "yny"),
    ("✓ ✗ ✓", "yny"),
    ("✅❌", "yn"),
    ("1. ✅ Supported – the text says so\n2. ❌ Not supported", "yn"),
    ("是，否，是", "yny"),
    ("是、否、是。", "yny"),
    ("支持，不支持", "yn"),
    ("1. yes, 2. no, 3. yes", "yny"),
    ("1: yes | 2: no", "yn"),
    ("1-yes, 2-no", "yn"),
    ("1) yes 2) no", "yn"),
    ("Verdicts: yes, no, yes", "yny"),
    ("判断结果：是、否", "yn"),
    ("Answers: [True, False]", "yn"),
    ("yes no yes", "yny"),
    ("Y, N", "yn"),
    ('["yes", "no"]', "yn"),
    ('{"verdicts": ["yes", "no"]}', "yn"),
    ('{"verdicts": [true, false]}', "yn"),
    ('{"verdicts": {"1": "yes", "2": "no"}}', "yn"),
    ('{"statement_1": "supported", "statement_2": "not supported"}', "yn"),
    (
        ('{"1": {"verdict": "yes", "reason": "it is"}, "2": {"verdict": "no", "reason": "not"}}'),
        "yn",
    ),
    (
        (
            '[{"statement": "Tea is green.", "supported": true}, {"statement": '
            '"Tea is blue.", "supported": false}]'
        ),
        "yn",
    ),
    ('[{"id": 2, "verdict": "no"}, {"id": 1, "verdict": "yes"}]', "yn"),
    ('[{"编号": 1, "判断": "是"}, {"编号": 2, "判断": "否"}]', "yn"),
    ('{"supported": [1, 3], "not_supported": [2]}', "yny"),
    ('{"Tea is a green drink.": "yes", "Tea is from Mars now.": "no"}', "yn"),
    ("[1, 0, 1]", "yny"),
    (('{"statement": 1, "verdict": "yes"}\n{"statement": 2, "verdict": "no"}'), "yn"),
    ("<verdict>yes</verdict>\n<verdict>no</verdict>", "yn"),
    (
        ('<verdicts>\n<verdict id="1">yes</verdict>\n<verdict id="2">no</verdict>\n</verdicts>'),
        "yn",
    ),
    (
        (
            '<statement id="1"><verdict>yes</verdict><reason>It '
            "is.</reason></statement>\n<statement "
            'id="2"><verdict>no</verdict><reason>None.</reason></statement>'
        ),
        "yn",
    ),
    ("<s1>yes</s1>\n<s2>no</s2>", "yn"),
    (
        ("- number: 1\n  quote: it is\n  verdict: yes\n- number: 2\n  quote: ''\n  verdict: no"),
        "yn",
    ),
    ("### Statement 1\nYes. The passage says so.\n\n### Statement 2\nNo. It says 1786.", "yn"),
    ("Statement 1: Yes\nReason: it is there.\n\nStatement 2: No\nReason: it is not.", "yn"),
    ("1. Tea is green. → yes\n2. Tea is blue. → no", "yn"),
    ("1. Tea is green. (supported)\n2. Tea is blue. (not supported)", "yn"),
    ("1. Tea is green - Yes\n2. Tea is blue - No", "yn"),
    ("1. Tea is green: **Yes**\n2. Tea is blue: **No**", "yn"),
    ("1. No trains run on Sunday. – yes\n2. Trains are late. – no", "yn"),
    (
        ("1. Tea is green.\n   Yes – the passage says so.\n2. Tea is blue.\n   No – it does not."),
        "yn",
    ),
    ("1. Supported by the passage.\n2. Not supported by the passage.", "yn"),
    (("1. The statement is supported by the passage.\n2. The statement is not supported."), "yn"),
    ("Statement 1 is supported.\nStatement 2 is not supported.", "yn"),
    ("1. Entailment\n2. Contradiction", "yn"),
    ("1. SUPPORTED\n2. NOT_SUPPORTED", "yn"),
    ("1. Correct\n2. Incorrect", "yn"),
    ("1. True - it is.\n2. False - it is not.", "yn"),
    ("第一条：支持\n第二条：不支持", "yn"),
    ("第1条：属实。\n第2条：不属实。", "yn"),
    ("一、是\n二、否", "yn"),
    ("1. 茶是绿色的。——是\n2. 茶是蓝色的。——否", "yn"),
    ("1. 段落提到了茶，因此支持。\n2. 段落没有提到，因此不支持。", "yn"),
    ("1. 得到支持\n2. 未得到支持", "yn"),
    ("陳述1：支持\n陳述2：不支持", "yn"),
    ("1. 正確\n2. 錯誤", "yn"),
    ("1. 對\n2. 錯", "yn"),
    ("1. 符合\n2. 与原文矛盾", "yn"),
    ("1. 是的，原文有。\n2. 没有提到。", "yn"),
    ("1️⃣ Yes\n2️⃣ No", "yn"),
    ("① 是\n② 否", "yn"),
    ("#1: yes\n#2: no", "yn"),
    ("S1: yes\nS2: no", "yn"),
    (
        ('1. **Verdict:** Yes\n   **Quote:** "tea is green"\n2. **Verdict:** No\n   **Quote:** ""'),
        "yn",
    ),
    ('1. Quote: "tea" Verdict: yes\n2. Quote: "" Verdict: no', "yn"),
    ("Here are the verdicts:\n\n1. [Yes] The passage says so.\n2. [No] It does not.", "yn"),
    ("[Yes]\n[No]", "yn"),
    ("- yes\n- no", "yn"),
    ("1. Yes\n2. No\n\nOverall, one of two statements is supported.", "yn"),
    ("1. Yes\n2. No\n\n**Overall verdict:** No", "yn"),
    (
        ('```json\n[\n {"number": 1, "verdict": "Yes"},\n {"number": 2, "verdict": "No"}\n]\n```'),
        "yn",
    ),
    ("The passage states this. **Verdict: Yes**", "y"),
    ("**Yes**", "y"),
    ("Answer: yes", "y"),
    ("判断：否", "n"),
    ("The passage helps to answer it. So: yes", "y"),
    ('{"verdict": "not relevant", "quote": ""}', "n"),
    ('{"relevant": true}', "y"),
    ("<verdict>yes</verdict>", "y"),
    ("<quote>tea</quote>\n<verdict>no</verdict>", "n"),
    ('quote: "tea is green"\nverdict: yes', "y"),
    ("partially", "n"),
    ("是否支持：是\n是否支持：否", "yn"),
    ("Yes the passage says so.", "y"),
    ("1 yes\n2 no", "yn"),
    ("Yes\n\nNo", "yn"),
    ("1. Yes 2. No 3. Yes", "yny"),
    ("**1.** Yes — it is.\n**2.** No — it is not.", "yn"),
    ('1. yes ("tea is no drink")\n2. no ("yes it is")', "yn"),
    ("1. Verdict - Yes\n2. Verdict - No", "yn"),
    ("Statement 1 → Yes\nStatement 2 → No", "yn"),
    ("Statement 1 - Supported: yes\nStatement 2 - Supported: no", "yn"),
    ("Supported: yes\nSupported: no", "yn"),
    ("1. Supported: Yes. The text says so.\n2. Supported: No. The text is silent.", "yn"),
    ("* Statement 1: **TRUE**\n* Statement 2: **FALSE**", "yn"),
    ("1. √\n2. ×", "yn"),
    ("√ × √", "yny"),
    ("1. T\n2. F", "yn"),
    ("Statement 1: yes; Statement 2: no", "yn"),
    ("陈述1：是；陈述2：否", "yn"),
    ("(1) yes (2) no", "yn"),
    ("1.是 2.否 3.是", "yny"),
    ("是/否/是", "yny"),
    ("yes/no/yes", "yny"),
    ('{"verdict": ["yes", "no"]}', "yn"),
    (
        (
            '[{"statement": "Room 101 is open", "verdict": "yes"}, {"statement": '
            '"It has 42", "verdict": "no"}]'
        ),
        "yn",
    ),
    ("First statement: yes\nSecond statement: no", "yn"),
    ("1. The passage supports this statement.\n2. The passage does not mention this.", "yn"),
    ("1. 上下文支持该陈述。\n2. 上下文未提及。", "yn"),
    ("1. 原文支持。\n2. 原文不支持。", "yn"),
    ("Statement 1 (Tea is green): Yes\nStatement 2 (Tea is blue): No", "yn"),
    ('1. "Tea is green" - Supported\n2. "Tea is blue" - Not supported', "yn"),
    (
        (
            "**1. Tea is green.**\n✅ Supported. The passage says so.\n"
            "\n**2. Tea is blue.**\n❌ Not supported. It does not."
        ),
        "yn",
    ),
    (
        (
            "1. Tea is green.\n   - Verdict: Supported\n"
            '   - Evidence: "tea is green"\n2. Tea is blue.\n'
            "   - Verdict: Unsupported\n   - Evidence: none"
        ),
        "yn",
    ),
    ("| 1 | yes |\n| 2 | no |", "yn"),
    (
        (
            "| Statement | Verdict | Quote |\n|:--|:--:|--|\n"
            '| 1. Tea is green | **Yes** | "green" |\n'
            "| 2. Tea is blue | **No** | – |"
        ),
        "yn",
    ),
    ("| # | Supported (yes/no) |\n|---|---|\n| 1 | yes |\n| 2 | no |", "yn"),
    ("| 陈述 | 是否支持 |\n| --- | --- |\n| 1 | 是 |\n| 2 | 否 |", "yn"),
    ("1\tyes\n2\tno", "yn"),
    ("Verdict 1: yes\nVerdict 2: no", "yn"),
    ("Answer 1: Yes.\nAnswer 2: No.", "yn"),
    ("1 = yes\n2 = no", "yn"),
    ("1 -> yes\n2 -> no", "yn"),
    ("1—是\n2—否", "yn"),
    ("1 是\n2 否", "yn"),
    ("yes\nno\nyes", "yny"),
    ("Yes.\nNo.\nYes.", "yny"),
    ("true\nfalse", "yn"),
    ("yes,no", "yn"),
    ("yes;no", "yn"),
    ("[true, false]", "yn"),
    ("(yes, no)", "yn"),
    ("['Yes', 'No']", "yn"),
    ("{'1': 'yes', '2': 'no'}", "yn"),
    ("{1: yes, 2: no}", "yn"),
    ("1:yes,2:no", "yn"),
    (
        (
            '{"verdicts": [{"number": 1, "verdict": "supported", "quote": "a"},'
            ' {"number": 2, "verdict": "contradicted", "quote": "b"}]}'
        ),
        "yn",
    ),
    (('{"judgments": [{"id": 1, "supported": "yes"}, {"id": 2, "supported": "no"}]}'), "yn"),
    (
        (
            '{"results": [{"statement_id": 1, "label": "SUPPORTED"}, '
            '{"statement_id": 2, "label": "NOT SUPPORTED"}]}'
        ),
        "yn",
    ),
    ('{"statement1": {"answer": "yes"}, "statement2": {"answer": "no"}}', "yn"),
    ('{"statements": [{"verdict": true}, {"verdict": false}]}', "yn"),
    (('{"结果": [{"序号": 1, "结论": "支持"}, {"序号": 2, "结论": "不支持"}]}'), "yn"),
    ('{"1": "是", "2": "否"}', "yn"),
    ('{"陈述1": "支持", "陈述2": "不支持"}', "yn"),
    ('{"判断": ["是", "否"]}', "yn"),
    ("Let me check each statement.\n\n1. yes\n2. no", "yn"),
    ("No problem! Here are the results:\n1. yes\n2. no", "yn"),
    ("All statements are supported except the second.\n1. yes\n2. no", "yn"),
    ("1. Yes.\nExplanation: no doubt.\n2. No.\nExplanation: yes, but elsewhere.", "yn"),
    ("1. Yes\n\n2. No\n\nLet me know if you have questions. No further remarks.", "yn"),
    ("1. yes\n2. not fully", "yn"),
    ("1. yes\n2. partially supported", "yn"),
    ("1. Supported? Yes\n2. Supported? No", "yn"),
    ("1. 支持\n2. 部分支持", "yn"),
    ("yes; it says no", "y"),
    ("No, yes is wrong", "n"),
    ("1. Correct.\n2. Wrong.", "yn"),
    ("1. Verified\n2. Unverified", "yn"),
    ("结论是：是", "y"),
    ("verdict=yes", "y"),
    ('yes (the quote is "not fermented")', "y"),
    ("quote: not there\nverdict: no", "n"),
    ("Final verdict: **No**", "n"),
    (
        (
            "1. Statement: Tea is green.\n   Supported: Yes\n"
            "2. Statement: Tea is blue.\n   Supported: No"
        ),
        "yn",
    ),
    ("Statement 1\nYes\n\nStatement 2\nNo", "yn"),
    ("<1>yes</1>\n<2>no</2>", "yn"),
    ("<answer>yes, no</answer>", "yn"),
    ("<answer>\n1. yes\n2. no\n</answer>", "yn"),
    ("1. <verdict>yes</verdict>\n2. <verdict>no</verdict>", "yn"),
    ('<verdict number="1">yes</verdict>\n<verdict number="2">no</verdict>', "yn"),
    ("\\boxed{yes}", "y"),
    ("**1. yes**\n**2. no**", "yn"),
    ("- 1: yes\n- 2: no", "yn"),
    ("> 1. yes\n> 2. no", "yn"),
    ("1. yes;\n2. no.", "yn"),
    ("A. yes\nB. no", "yn"),
    ("a) yes\nb) no", "yn"),
    ("i. yes\nii. no", "yn"),
    (
        (
            "1. Not supported: yes, it is mentioned, but elsewhere.\n"
            "2. Partially supported: yes, once."
        ),
        "nn",
    ),
    ("[Yes]\n[No]", "yn"),
    ("The answer is yes.", "y"),
    ("My verdict is no.", "n"),
    ('{"1": 1, "2": 0}', "yn"),
]

# Each row has a reply and the number of statements.
UNCLEAR = [
    ("1. Yes, mostly.\n2. no", 2),
    ("1. Supported by nothing\n2. no", 2),
    ("1. 支持不足\n2. 支持", 2),
    ("1. It is not true that it is supported.\n2. yes", 2),
    ("1. Yes\n2. Yes\nActually, statement 2: No", 2),
    ("1. yes\n2. no\n3. yes", 4),
    (
        (
            "upstream connect error or disconnect/reset before headers. reset reason: "
            "connection termination"
        ),
        2,
    ),
    ("Yes, but only half of it", 1),
    ("1. yes\n2. yes, but\n3. no", 2),
    ("yes and no", 1),
    ("yes/no", 1),
    ("yes or no", 2),
    ("1. maybe\n2. no", 2),
    ("1. yes\n3. no", 2),
    ("1. yes\n2. no\n3. yes", 2),
    ("1. yes\n2. no", 3),
    ("[1]", 1),
    ('{"verdict": 1}', 1),
    ("N/A", 1),
    ("1. yes\n2. N/A", 2),
    ("不确定", 1),
    ("1. 是\n2. 无法判断", 2),
    ("mostly supported", 1),
    ('{"unsupported": true}', 1),
    ('{"hallucinated": false}', 1),
    ("1. Yes\n2. Unclear", 2),
    ("Not sure", 1),
    ("Supported in part", 1),
    ("1. 无锡位于江苏。\n2. 不丹在亚洲。", 2),
    ("1. The answer is no longer clear.\n2. yes", 2),
    ('{"supported": [1], "unsupported": [3]}', 2),
    ("1. yes\n1. no", 2),
    ("1. yes\n1. no", 1),
    ("Yes. No.", 1),
    ("1. yes: no\n2. no", 2),
    ("是，但不完整", 1),
    ("1. Verdict: yes\nVerdict: no", 1),
    (('{"verdicts": [{"number": 1, "verdict": "yes"}, {"number": 2, "verdict": "unclear"}]}'), 2),
    ("All statements were checked. The trains are late.", 1),
    ("1. yes\n2. mostly", 2),
    ("1. Yes?\n2. No", 2),
    ("1. Yes/No\n2. No", 2),
    ("1. The passage is about tea.\n2. It is old.", 2),
    ("yes, no, maybe", 3),
    ("yes, no, yes, no", 3),
    ("1. yes\n2.", 2),
    ("1.\n2.", 2),
    (('{"verdicts": [{"number": 1, "verdict": "yes"}, {"number": 1, "verdict": "no"}]}'), 2),
    ('{"verdicts": ["yes", "maybe"]}', 2),
    ('{"verdicts": ["yes", null]}', 2),
    ('[true, "unclear"]', 2),
    ("1. 是。\n2. 是，但年份不对。", 2),
    ("1. 基本支持\n2. 不支持", 2),
    ("两条陈述都需要核对。", 2),
    ("1. 不一定\n2. 是", 2),
    ("1. 可能\n2. 是", 2),
    ("1. Yes – however, no.\n2. No", 2),
    ("1. Not only supported but quoted.\n2. no", 2),
    ("Yes, no.", 1),
    ("[Yes]\n[No]", 1),
    ("1. The statement is hardly supported.\n2. yes", 2),
    ("1. The claim that it is supported is false.\n2. no", 2),
    (
        (
            "1. Not supported: yes, it is mentioned, but elsewhere.\n"
            "2. Partially supported: yes, but only once."
        ),
        3,
    ),
    ("The text does not say whether it is supported.", 2),
    ("It might be that the statement is supported.", 1),
    ("1. ✅ Not supported\n2. ❌", 2),
]


@pytest.mark.parametrize(("reply", "decisions"), DECISIONS)
def test_read_verdicts_reads_usual_forms(reply: str, decisions: str) -> None:
    verdicts = read_verdicts(reply, len(decisions))
    assert "".join("y" if yes else "n" for yes, _ in verdicts) == decisions


@pytest.mark.parametrize(("reply", "count"), UNCLEAR)
def test_unclear_decisions_raise(reply: str, count: int) -> None:
    with pytest.raises(ValueError, match=r"answer|refused|numbers"):
        read_verdicts(reply, count)


def test_reason_of_verdict_is_read() -> None:
    reply = "**Statement 1:** Tea is green.\n**Verdict:** Yes\n**Reason:** The passage says so."
    assert read_verdicts(reply, 1) == [(True, "The passage says so.")]
    assert read_verdicts('[{"id": 2, "verdict": "no"}, {"id": 1, "verdict": "yes"}]', 2) == [
        (True, ""),
        (False, ""),
    ]
