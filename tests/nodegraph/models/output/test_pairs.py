"""Question-answer pairs in the forms that models use."""

import pytest

from nodekin.nodegraph.models.output.pairs import parse_pairs

# Each row has a reply and its pairs.
ROWS = [
    (
        (
            "Q: When was the canal opened?\nA: In 1869.\n"
            "\nQ: Who built it?\nA: A company led by Ferdinand de Lesseps."
        ),
        [
            ("When was the canal opened?", "In 1869."),
            ("Who built it?", "A company led by Ferdinand de Lesseps."),
        ],
    ),
    (
        (
            '```json\n{\n  "qa_pairs": [\n    {"q": "Which river crosses Paris?", '
            '"a": "The Seine"},\n    {"q": "How many bridges cross it there?", '
            '"a": "37"}\n  ]\n}\n```'
        ),
        [("Which river crosses Paris?", "The Seine"), ("How many bridges cross it there?", "37")],
    ),
    (
        (
            "1. **Question:** What does HTTP 404 mean?\n"
            "   **Answer:** The resource was not found.\n"
            "2. **Question:** Which code signals success?\n"
            "   **Answer:** 200"
        ),
        [
            ("What does HTTP 404 mean?", "The resource was not found."),
            ("Which code signals success?", "200"),
        ],
    ),
    (
        (
            "| Question | Answer |\n|---|---|\n| What is the speed of sound in air? | "
            "About 343 m/s |\n| Does it depend on temperature? | Yes, it rises with "
            "temperature |"
        ),
        [
            ("What is the speed of sound in air?", "About 343 m/s"),
            ("Does it depend on temperature?", "Yes, it rises with temperature"),
        ],
    ),
    (
        (
            '{"What is a quorum?": "The minimum number of members present.", "How '
            'large is it?": "Half of the members."}'
        ),
        [
            ("What is a quorum?", "The minimum number of members present."),
            ("How large is it?", "Half of the members."),
        ],
    ),
    (
        (
            '{"question": "What is the capital of Mali?", "answer": "Bamako"}\n'
            '{"question": "Which river flows through it?", "answer": "The Niger"}'
        ),
        [
            ("What is the capital of Mali?", "Bamako"),
            ("Which river flows through it?", "The Niger"),
        ],
    ),
    (
        (
            "- question: What does the device measure?\n"
            "  answer: Carbon dioxide\n- question: In which unit?\n"
            "  answer: Parts per million"
        ),
        [
            ("What does the device measure?", "Carbon dioxide"),
            ("In which unit?", "Parts per million"),
        ],
    ),
    (
        (
            "### What is a firewall?\nA firewall filters network traffic.\n"
            "\n### Which types exist?\nThere are packet filters and application gateways."
        ),
        [
            ("What is a firewall?", "A firewall filters network traffic."),
            ("Which types exist?", "There are packet filters and application gateways."),
        ],
    ),
    (
        (
            '[{"question": "Who founded Nokia?", "answer": "Fredrik Idestam"}, '
            '{"question": "In which year?", "answer": "1865"}, {"question": '
            '"What did the company first pro'
        ),
        [("Who founded Nokia?", "Fredrik Idestam"), ("In which year?", "1865")],
    ),
    (
        "问：黄山在哪个省？\n答：安徽省。\n\n问：最高峰叫什么？\n答：莲花峰。",
        [("黄山在哪个省？", "安徽省。"), ("最高峰叫什么？", "莲花峰。")],
    ),
    (
        (
            '[{"问题": "水的沸点是多少？", "答案": "标准大气压下为100℃"}, '
            '{"问题": "高原上会变化吗？", "答案": "会，沸点降低"}]'
        ),
        [("水的沸点是多少？", "标准大气压下为100℃"), ("高原上会变化吗？", "会，沸点降低")],
    ),
    (
        (
            "| 问题 | 答案 |\n| --- | --- |\n| 社保缴费基数怎么定？ | "
            "按上年度月平均工资确定 |\n| 何时调整？ | 每年7月 |"
        ),
        [("社保缴费基数怎么定？", "按上年度月平均工资确定"), ("何时调整？", "每年7月")],
    ),
    (
        (
            "Q1：什么是5G？\nA1：第五代移动通信技术。\n"
            "Q2：它比4G快多少？\nA2：峰值速率约为4G的20倍。"
        ),
        [("什么是5G？", "第五代移动通信技术。"), ("它比4G快多少？", "峰值速率约为4G的20倍。")],
    ),
    (
        "Q: Does TCP/IP use ports?\nA: Yes: see RFC 793.",
        [("Does TCP/IP use ports?", "Yes: see RFC 793.")],
    ),
    (
        "Q: What is A?\nA: It is: a letter.\nB is another.",
        [("What is A?", "It is: a letter.\nB is another.")],
    ),
    ('{"question": "Is tea green?", "answer": true}', [("Is tea green?", "Yes")]),
    ('[{"question": "How many?", "answer": 37}]', [("How many?", "37")]),
    (
        "1. What is tea?\nA drink.\n\n2. Who drinks it? Why?\nPeople.",
        [("What is tea?", "A drink."), ("Who drinks it? Why?", "People.")],
    ),
]

# Replies with the same pairs.
FORMS: list[tuple[list[tuple[str, str]], list[str]]] = [
    (
        [("What is tea?", "A drink."), ("Who drinks it?", "People.")],
        [
            (
                '{"qa_pairs": [{"q": "What is tea?", "a": "A drink."}, {"q": "Who '
                'drinks it?", "a": "People."}]}'
            ),
            (
                "| Question | Answer |\n|---|---|\n| What is tea? | A drink. |\n"
                "| Who drinks it? | People. |"
            ),
            (
                "| # | Question | Answer |\n|---|---|---|\n"
                "| 1 | What is tea? | A drink. |\n| 2 | Who drinks it? | People. |"
            ),
            '{"What is tea?": "A drink.", "Who drinks it?": "People."}',
            '{"pairs": {"What is tea?": "A drink.", "Who drinks it?": "People."}}',
            "### What is tea?\nA drink.\n\n### Who drinks it?\nPeople.",
            "**What is tea?**\nA drink.\n\n**Who drinks it?**\nPeople.",
            "1. **What is tea?**\n   A drink.\n2. **Who drinks it?**\n   People.",
            "1. What is tea?\n   - A drink.\n2. Who drinks it?\n   - People.",
            "- What is tea?\n  A drink.\n- Who drinks it?\n  People.",
            "1. What is tea? – A drink.\n2. Who drinks it? – People.",
            "1. What is tea? (Answer: A drink.)\n2. Who drinks it? (Answer: People.)",
            "- **What is tea?** A drink.\n- **Who drinks it?** People.",
            "What is tea? | A drink.\nWho drinks it? | People.",
            "What is tea? -> A drink.\nWho drinks it? -> People.",
            "**What is tea?** – A drink.\n**Who drinks it?** – People.",
            "Q: What is tea? A: A drink.\nQ: Who drinks it? A: People.",
            "Q1. What is tea?\nA1. A drink.\n\nQ2. Who drinks it?\nA2. People.",
            (
                "**Q1:** What is tea?\n**A1:** A drink.\n"
                "\n---\n\n**Q2:** Who drinks it?\n**A2:** People."
            ),
            "**Q1: What is tea?**\nA: A drink.\n\n**Q2: Who drinks it?**\nA: People.",
            (
                "Question 1: What is tea?\nAnswer 1: A drink.\n"
                "\nQuestion 2: Who drinks it?\nAnswer 2: People."
            ),
            (
                "### Pair 1\n**Question:** What is tea?\n"
                "**Answer:** A drink.\n\n### Pair 2\n**Question:** Who drinks it?\n"
                "**Answer:** People."
            ),
            "1.\nQ: What is tea?\nA: A drink.\n\n2.\nQ: Who drinks it?\nA: People.",
            (
                "Q: What is tea?\nA: A drink.\nDifficulty: easy\n"
                "\nQ: Who drinks it?\nA: People.\nDifficulty: easy"
            ),
            (
                "<qa>\n<question>What is tea?</question>\n"
                "<answer>A drink.</answer>\n</qa>\n<qa>\n"
                "<question>Who drinks it?</question>\n<answer>People.</answer>\n"
                "</qa>"
            ),
            (
                "<question>What is tea?</question><answer>A drink.</answer>\n"
                "<question>Who drinks it?</question><answer>People.</answer>"
            ),
            (
                "<pair><q>What is tea?</q><a>A drink.</a></pair>\n"
                "<pair><q>Who drinks it?</q><a>People.</a></pair>"
            ),
            "<q>What is tea?</q>\n<a>A drink.</a>\n<q>Who drinks it?</q>\n<a>People.</a>",
            (
                "<question>What is tea?</question>\n<answer>A drink.</answer>\n"
                "\n<question>Who drinks it?</question>\n"
                "<answer>People.</answer>"
            ),
            '[["What is tea?", "A drink."], ["Who drinks it?", "People."]]',
            (
                '{"questions": ["What is tea?", "Who drinks it?"], "answers": ["A '
                'drink.", "People."]}'
            ),
            ('{"Q1": "What is tea?", "A1": "A drink.", "Q2": "Who drinks it?", "A2": "People."}'),
            (
                '{"question_1": "What is tea?", "answer_1": "A drink.", '
                '"question_2": "Who drinks it?", "answer_2": "People."}'
            ),
            (
                '[{"prompt": "What is tea?", "completion": "A drink."}, {"prompt": '
                '"Who drinks it?", "completion": "People."}]'
            ),
            (
                '{"1": {"question": "What is tea?", "answer": "A drink."}, "2": '
                '{"question": "Who drinks it?", "answer": "People."}}'
            ),
            (
                '[{"Question": "What is tea?", "Answer": "A drink."}, {"Question": '
                '"Who drinks it?", "Answer": "People."}]'
            ),
            '["Q: What is tea?\\nA: A drink.", "Q: Who drinks it?\\nA: People."]',
            ("Questions:\n1. What is tea?\n2. Who drinks it?\n\nAnswers:\n1. A drink.\n2. People."),
            "- q: What is tea?\n  a: A drink.\n- q: Who drinks it?\n  a: People.",
            "question,answer\nWhat is tea?,A drink.\nWho drinks it?,People.",
            (
                "Question\nWhat is tea?\nAnswer\nA drink.\n"
                "\nQuestion\nWho drinks it?\nAnswer\nPeople."
            ),
            "❓ What is tea?\n💡 A drink.\n\n❓ Who drinks it?\n💡 People.",
            "> Q: What is tea?\n> A: A drink.\n\n> Q: Who drinks it?\n> A: People.",
            "What is tea?\nA drink.\n\nWho drinks it?\nPeople.",
            (
                "## Question 1\nWhat is tea?\n\n## Answer 1\n"
                "A drink.\n\n## Question 2\nWho drinks it?\n"
                "\n## Answer 2\nPeople."
            ),
            (
                "Here are the pairs:\n\n1. What is tea?\n"
                "A drink.\n\n2. Who drinks it?\nPeople.\n"
                "\nLet me know if you need more pairs!"
            ),
            (
                "**Question:** What is tea?\n\n**Answer:** A drink.\n"
                "\n***\n\n**Question:** Who drinks it?\n"
                "\n**Answer:** People.\n\n***"
            ),
            "Q – What is tea?\nA – A drink.\nQ – Who drinks it?\nA – People.",
            "1. What is tea?\n   Answer: A drink.\n2. Who drinks it?\n   Answer: People.",
        ],
    ),
    (
        [("茶是什么？", "饮品。"), ("谁喝茶？", "人。")],
        [
            "| 问题 | 答案 |\n|---|---|\n| 茶是什么？ | 饮品。 |\n| 谁喝茶？ | 人。 |",
            "問：茶是什么？\n答：饮品。\n問：谁喝茶？\n答：人。",
            "问题一：茶是什么？\n答案一：饮品。\n问题二：谁喝茶？\n答案二：人。",
            "1、茶是什么？（答案：饮品。）\n2、谁喝茶？（答案：人。）",
            "**问：茶是什么？**\n答：饮品。\n\n**问：谁喝茶？**\n答：人。",
            ('[{"問題": "茶是什么？", "答案": "饮品。"}, {"問題": "谁喝茶？", "答案": "人。"}]'),
            '{"茶是什么？": "饮品。", "谁喝茶？": "人。"}',
            "### 茶是什么？\n饮品。\n\n### 谁喝茶？\n人。",
            "1. 茶是什么？\n   饮品。\n2. 谁喝茶？\n   人。",
            "【问】茶是什么？\n【答】饮品。\n【问】谁喝茶？\n【答】人。",
            "问：茶是什么？ 答：饮品。\n问：谁喝茶？ 答：人。",
            "问答对1：\n问：茶是什么？\n答：饮品。\n\n问答对2：\n问：谁喝茶？\n答：人。",
            "Q1：茶是什么？\nA1：饮品。\nQ2：谁喝茶？\nA2：人。",
            ('[{"问": "茶是什么？", "答": "饮品。"}, {"问": "谁喝茶？", "答": "人。"}]'),
            (
                "问题：茶是什么？\n回答：饮品。\n来源：第一段\n"
                "\n问题：谁喝茶？\n回答：人。\n来源：第二段"
            ),
        ],
    ),
]

INVALID = [
    (
        "I'd be happy to create question-answer pairs! However, I don't see any "
        "passage in your message. Could you please paste it?"
    ),
    "很抱歉，由于文段为空，我无法生成问答对。请提供文段内容。",
    "What is tea?\nWho drinks it?",
    "1. What is tea?\n2. Who drinks it?",
    "Tea has been drunk since the Tang dynasty.",
    "I'd be happy to help! Could you share the passage?",
    "Would you like some pairs? Sure.",
    "### Overview\nThis text is about tea. Do you like it?",
    "I'm sorry, but no passage was provided.",
    "文段缺失，请提供。",
]


@pytest.mark.parametrize(
    ("reply", "expected"), [*ROWS, *((reply, value) for value, all in FORMS for reply in all)]
)
def test_parse_pairs_reads_usual_forms(reply: str, expected: list[tuple[str, str]]) -> None:
    assert parse_pairs(reply) == expected


@pytest.mark.parametrize("reply", INVALID)
def test_reply_without_pairs_raises(reply: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_pairs(reply)
