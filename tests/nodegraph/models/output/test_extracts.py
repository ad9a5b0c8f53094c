"""Questions of a passage in the forms that models use."""

import pytest

from nodekin.nodegraph.models.output.extracts import parse_questions

# Each row has a reply and its questions.
ROWS = [
    (
        (
            "1. When was the observatory built?\n2. Who paid for it?\n"
            "3. What is the diameter of its mirror?"
        ),
        [
            "When was the observatory built?",
            "Who paid for it?",
            "What is the diameter of its mirror?",
        ],
    ),
    (
        (
            '["What is the notice period?", "Who signs the contract?", "Can the '
            'contract be extended?"]'
        ),
        ["What is the notice period?", "Who signs the contract?", "Can the contract be extended?"],
    ),
    (
        (
            '{"questions": [{"id": 1, "question": "How does a heat pump work?"}, '
            '{"id": 2, "question": "How much electricity does it need?"}]}'
        ),
        ["How does a heat pump work?", "How much electricity does it need?"],
    ),
    (
        (
            "### Factual\n1. Which year did the plague reach London?\n"
            "2. How many people died?\n\n### Causal\n"
            "3. Why did the plague spread so fast?"
        ),
        [
            "Which year did the plague reach London?",
            "How many people died?",
            "Why did the plague spread so fast?",
        ],
    ),
    (
        (
            "a) What does the warranty cover?\nb) How long is it valid?\n"
            "c) How does one file a claim?"
        ),
        ["What does the warranty cover?", "How long is it valid?", "How does one file a claim?"],
    ),
    (
        (
            'questions:\n  - "What is the deadline for the application?"\n'
            '  - "Which documents are required?"\n'
            '  - "Whom can applicants contact?"'
        ),
        [
            "What is the deadline for the application?",
            "Which documents are required?",
            "Whom can applicants contact?",
        ],
    ),
    (
        (
            "| No. | Question |\n|-----|----------|\n"
            "| 1 | What is a hedge fund? |\n| 2 | Who may invest in one? |"
        ),
        ["What is a hedge fund?", "Who may invest in one?"],
    ),
    (
        (
            "What is the speed limit in towns? What happens if it is exceeded? Who "
            "collects the fines?"
        ),
        [
            "What is the speed limit in towns?",
            "What happens if it is exceeded?",
            "Who collects the fines?",
        ],
    ),
    (
        "什么是碳中和？\n中国计划何时实现碳中和？\n主要措施有哪些？",
        ["什么是碳中和？", "中国计划何时实现碳中和？", "主要措施有哪些？"],
    ),
    (
        '{"问题": ["谁是《红楼梦》的作者？", "小说讲述了哪些家族？"]}',
        ["谁是《红楼梦》的作者？", "小说讲述了哪些家族？"],
    ),
    (
        ("1、竹子一天能长多高？（答案：约一米）\n2、竹子开花意味着什么？（答案：植株将枯死）"),
        ["竹子一天能长多高？", "竹子开花意味着什么？"],
    ),
    (
        (
            "<think>\n文段讲的是台风的形成。\n</think>\n"
            "① 台风是怎样形成的？\n② 台风一般在什么季节出现？"
        ),
        ["台风是怎样形成的？", "台风一般在什么季节出现？"],
    ),
    (
        '1. What does "a | b" mean in Bash?\n2. Is TCP/IP old?',
        ['What does "a | b" mean in Bash?', "Is TCP/IP old?"],
    ),
]

# Replies with the same questions.
FORMS: list[tuple[list[str], list[str]]] = [
    (
        ["What is tea?", "Who drinks it?"],
        [
            "| # | Question |\n|---|---|\n| 1 | What is tea? |\n| 2 | Who drinks it? |",
            '{"q1": "What is tea?", "q2": "Who drinks it?"}',
            '[{"q": "What is tea?"}, {"q": "Who drinks it?"}]',
            '{"What is tea?": "A drink.", "Who drinks it?": "People."}',
            (
                '[{"question": "What is tea?", "answer": "A drink."}, {"question": '
                '"Who drinks it?", "answer": "People."}]'
            ),
            "1. What is tea?\n   - A drink.\n2. Who drinks it?\n   - People.",
            "### What is tea?\nA drink.\n\n### Who drinks it?\nPeople.",
            "Q1: What is tea?\nQ2: Who drinks it?",
            "1. What is tea? (Answer: A drink.)\n2. Who drinks it? (Answer: People.)",
            "- **Fact:** What is tea?\n- **People:** Who drinks it?",
            '{"factual": ["What is tea?"], "other": ["Who drinks it?"]}',
            "What is tea? | Who drinks it?",
            "What is tea?; Who drinks it?",
            "<question>What is tea?</question>\n<question>Who drinks it?</question>",
            "<questions>\n1. What is tea?\n2. Who drinks it?\n</questions>",
            "1. What is tea?\n2. Who drinks it?\n\nWould you like the answers too?",
            "1. What is tea?\n2. Who drinks it?\n\nThese questions cover the main points.",
            "1. What is tea? – tests a definition\n2. Who drinks it? – tests detail",
            "**What is tea?**\n**Who drinks it?**",
            "Questions that the passage answers:\n\nWhat is tea?\nWho drinks it?",
            (
                "| Question | Answer |\n|---|---|\n| What is tea? | A drink? maybe |\n"
                "| Who drinks it? | People. |"
            ),
            "What is tea?, Who drinks it?",
            '"What is tea?" "Who drinks it?"',
            'questions = ["What is tea?", "Who drinks it?"]',
            "What is tea?<br>Who drinks it?",
            "1. What is tea?\n2. Who drinks it?\n\nAnswers:\n1. A drink.\n2. People.",
            "Easy:\n- What is tea?\n\nHard:\n- Who drinks it?",
            "Q: What is tea?\nA: A drink.\n\nQ: Who drinks it?\nA: People.",
        ],
    ),
    (
        ["茶是什么？", "谁喝茶？"],
        [
            "1. 茶是什么？（第一段）\n2. 谁喝茶？（第二段）",
            '{"問題": ["茶是什么？", "谁喝茶？"]}',
            "問題1：茶是什么？\n問題2：谁喝茶？",
            "| 序号 | 问题 |\n|---|---|\n| 1 | 茶是什么？ |\n| 2 | 谁喝茶？ |",
        ],
    ),
]

INVALID = [
    ('{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'),
    "Could you please provide the passage?",
    "I don't see any passage. Could you paste it?",
    "请提供文段内容。",
    "您能提供文段吗？",
    "It looks like you haven't provided a passage. What would you like me to do?",
]


@pytest.mark.parametrize(
    ("reply", "expected"), [*ROWS, *((reply, value) for value, all in FORMS for reply in all)]
)
def test_parse_questions_reads_usual_forms(reply: str, expected: list[str]) -> None:
    assert parse_questions(reply) == expected


@pytest.mark.parametrize("reply", INVALID)
def test_reply_without_questions_raises(reply: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_questions(reply)
