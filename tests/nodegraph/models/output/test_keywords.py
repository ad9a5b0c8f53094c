"""Keywords in the forms that models use."""

import pytest

from nodekin.nodegraph.models.output.keywords import parse_keywords

# Each row has a reply and its keywords.
KEYWORDS = [
    (
        "solar panels, inverter, net metering, battery storage, grid",
        ["solar panels", "inverter", "net metering", "battery storage", "grid"],
    ),
    (
        (
            '["machine learning", "gradient descent", "loss function", '
            '"overfitting", "regularization"]'
        ),
        ["machine learning", "gradient descent", "loss function", "overfitting", "regularization"],
    ),
    (
        (
            "Here are 5 keywords from the passage:\n"
            "\n- **Roman Empire**\n- **Augustus**\n- **Senate**\n"
            "- **Principate**\n- **succession**"
        ),
        ["Roman Empire", "Augustus", "Senate", "Principate", "succession"],
    ),
    (
        (
            "1. **Inflation** – the general rise of prices\n"
            "2. **Central bank** – sets the interest rate\n"
            "3. **Interest rate** – main policy tool\n"
            "4. **Unemployment** – trade-off with inflation\n"
            "5. **Phillips curve** – describes the trade-off"
        ),
        ["Inflation", "Central bank", "Interest rate", "Unemployment", "Phillips curve"],
    ),
    (
        "Kubernetes; pods; autoscaling; ingress; Helm",
        ["Kubernetes", "pods", "autoscaling", "ingress", "Helm"],
    ),
    (
        "```\njazz\nimprovisation\nMiles Davis\ntrumpet\nbebop\n```",
        ["jazz", "improvisation", "Miles Davis", "trumpet", "bebop"],
    ),
    (
        "vaccine | antibody | mRNA | booster | immunity",
        ["vaccine", "antibody", "mRNA", "booster", "immunity"],
    ),
    (
        (
            "Keyword 1: lighthouse\nKeyword 2: Fresnel lens\n"
            "Keyword 3: navigation\nKeyword 4: keeper\n"
            "Keyword 5: automation"
        ),
        ["lighthouse", "Fresnel lens", "navigation", "keeper", "automation"],
    ),
    (
        (
            '[{"keyword": "blockchain", "score": 0.93}, {"keyword": "smart '
            'contract", "score": 0.88}, {"keyword": "Ethereum", "score": 0.81}, '
            '{"keyword": "gas fee", "score": 0.7}, {"keyword": "wallet", '
            '"score": 0.66}]'
        ),
        ["blockchain", "smart contract", "Ethereum", "gas fee", "wallet"],
    ),
    ("人工智能，芯片，算力，出口管制，供应链", ["人工智能", "芯片", "算力", "出口管制", "供应链"]),
    (
        "1. 糖尿病\n2. 胰岛素\n3. 血糖监测\n4. 饮食控制\n5. 并发症",
        ["糖尿病", "胰岛素", "血糖监测", "饮食控制", "并发症"],
    ),
    (
        '{"关键词": ["量子计算", "比特", "叠加", "纠缠", "退相干"]}',
        ["量子计算", "比特", "叠加", "纠缠", "退相干"],
    ),
    ("【敦煌】【壁画】【飞天】【石窟】【丝绸之路】", ["敦煌", "壁画", "飞天", "石窟", "丝绸之路"]),
    ('["Smith, John", "TCP/IP", "AC/DC"]', ["Smith, John", "TCP/IP", "AC/DC"]),
    ("TCP/IP, AC/DC, C++", ["TCP/IP", "AC/DC", "C++"]),
    ("TCP/IP\nAC/DC\n1,000 meters", ["TCP/IP", "AC/DC", "1,000 meters"]),
    ("1. Smith, John\n2. Doe, Jane\n3. TCP/IP", ["Smith, John", "Doe, Jane", "TCP/IP"]),
    (
        "1. Star Wars: A New Hope\n2. George Lucas\n3. film",
        ["Star Wars: A New Hope", "George Lucas", "film"],
    ),
    ("machine-learning, real-time, e-mail", ["machine-learning", "real-time", "e-mail"]),
    (
        "1. Convolutional Neural Network (CNN)\n2. Natural Language Processing (NLP)",
        ["Convolutional Neural Network (CNN)", "Natural Language Processing (NLP)"],
    ),
    ("tea", ["tea"]),
    ("AC/DC", ["AC/DC"]),
    ("#tea #coffee", ["tea", "coffee"]),
    ("C#, F#", ["C#", "F#"]),
    ("research and development, trade, tax", ["research and development", "trade", "tax"]),
    ("[tea, coffee, milk]", ["tea", "coffee", "milk"]),
    ("war and peace; Tolstoy; novel", ["war and peace", "Tolstoy", "novel"]),
    ("和平、发展、合作", ["和平", "发展", "合作"]),
    ("Paris – France, Rome", ["Paris", "France", "Rome"]),
    ("Smith, John; Doe, Jane", ["Smith", "John", "Doe", "Jane"]),
    ("New York, NY", ["New York", "NY"]),
    ("input/output", ["input/output"]),
    ("他说：你好", ["他说：你好"]),
    ("2:1 ratio\n3D\nC", ["2:1 ratio", "3D", "C"]),
]

# Replies with the same keywords.
FORMS: list[tuple[list[str], list[str]]] = [
    (
        ["Inflation", "Central bank", "Wage"],
        [
            (
                "1. **Inflation** – the general rise of prices\n"
                "2. **Central bank** – sets the interest rate\n"
                "3. **Wage** – what is paid"
            ),
            "- Inflation: the general rise of prices\n- Central bank: sets rates\n- Wage: pay",
            "1. Inflation (the rise of prices)\n2. Central bank (sets rates)\n3. Wage (pay)",
            "Inflation | Central bank | Wage",
            "Inflation / Central bank / Wage",
            "Inflation; Central bank; Wage",
            "Inflation • Central bank • Wage",
            "Inflation · Central bank · Wage",
            "Inflation, Central bank, and Wage",
            "Inflation, Central bank, Wage.",
            "【Inflation】【Central bank】【Wage】",
            "[Inflation] [Central bank] [Wage]",
            "[Inflation, Central bank, Wage]",
            '"Inflation" "Central bank" "Wage"',
            "`Inflation` `Central bank` `Wage`",
            "`Inflation`, `Central bank`, `Wage`",
            "**Inflation**, **Central bank**, **Wage**",
            "**Inflation** **Central bank** **Wage**",
            (
                "| # | Keyword | Explanation |\n|---|---|---|\n"
                "| 1 | Inflation | the general rise of prices |\n"
                "| 2 | Central bank | sets rates |\n| 3 | Wage | pay |"
            ),
            (
                "| Keyword | Score |\n|---|---|\n| Inflation | 0.9 |\n"
                "| Central bank | 0.8 |\n| Wage | 0.7 |"
            ),
            "keyword,score\nInflation,0.9\nCentral bank,0.8\nWage,0.7",
            "Keywords: Inflation, Central bank, Wage",
            "Tags: Inflation, Central bank, Wage",
            "Key terms: Inflation; Central bank; Wage",
            "**Key phrases:** Inflation, Central bank, Wage",
            "The keywords are: Inflation, Central bank, Wage",
            "The three keywords are Inflation, Central bank, and Wage.",
            "Here are the keywords extracted from the passage: Inflation, Central bank, Wage",
            "Keywords:\nInflation\nCentral bank\nWage",
            "## Keywords\n\n1. Inflation\n2. Central bank\n3. Wage",
            "**Keywords**\n\nInflation, Central bank, Wage",
            (
                "<keywords>\n<keyword>Inflation</keyword>\n"
                "<keyword>Central bank</keyword>\n<keyword>Wage</keyword>\n"
                "</keywords>"
            ),
            "<keywords>Inflation, Central bank, Wage</keywords>",
            (
                "<keyword>Inflation</keyword>, <keyword>Central bank</keyword>, "
                "<keyword>Wage</keyword>"
            ),
            '{"keywords": ["Inflation", "Central bank", "Wage"]}',
            '{"tags": ["Inflation", "Central bank", "Wage"]}',
            '{"key_terms": ["Inflation", "Central bank", "Wage"]}',
            ('{"keyword1": "Inflation", "keyword2": "Central bank", "keyword3": "Wage"}'),
            '{"1": "Inflation", "2": "Central bank", "3": "Wage"}',
            '{"Inflation": 0.9, "Central bank": 0.8, "Wage": 0.7}',
            '{"keywords": {"Inflation": 0.9, "Central bank": 0.8, "Wage": 0.7}}',
            (
                '[{"term": "Inflation", "relevance": 0.9}, {"term": "Central bank"}, '
                '{"term": "Wage"}]'
            ),
            (
                '{"Inflation": "the general rise of prices", "Central bank": "the bank '
                'that sets rates", "Wage": "what is paid monthly"}'
            ),
            ('{"keywords": [{"word": "Inflation"}, {"word": "Central bank"}, {"word": "Wage"}]}'),
            '{"economic": ["Inflation", "Central bank"], "other": ["Wage"]}',
            '{"result": {"keywords": ["Inflation", "Central bank", "Wage"]}}',
            '["Inflation", "Central bank", "Wage"]',
            "Inflation\nCentral bank\nWage",
            "1. Inflation\n2. Central bank\n3. Wage\n\nThese keywords capture the main ideas.",
            "1. Inflation\n2. Central bank\n3. Wage\n\nNote: I chose nouns.",
            ("Inflation, Central bank, Wage\n\nThese are the most important terms of the passage."),
            (
                "1. **Keyword:** Inflation\n   **Explanation:** rise\n"
                "2. **Keyword:** Central bank\n   **Explanation:** bank\n"
                "3. **Keyword:** Wage\n   **Explanation:** pay"
            ),
            (
                "- **Inflation**\n  - The general rise of prices in a country\n"
                "- **Central bank**\n  - Sets the interest rate.\n"
                "- **Wage**\n  - What workers are paid."
            ),
            "**Concepts:** Inflation, Central bank\n**Others:** Wage",
            "- Concepts: Inflation, Central bank\n- Others: Wage",
            "- Economy\n  - Inflation\n  - Central bank\n  - Wage",
            "1. Inflation (0.95)\n2. Central bank (0.9)\n3. Wage (0.8)",
            "1. Inflation - 95%\n2. Central bank - 90%\n3. Wage - 80%",
            "1) Inflation 2) Central bank 3) Wage",
            "1. Inflation, 2. Central bank, 3. Wage",
            "① Inflation ② Central bank ③ Wage",
            "Keyword 1: Inflation, Keyword 2: Central bank, Keyword 3: Wage",
            "a) Inflation\nb) Central bank\nc) Wage",
            "keywords:\n  - Inflation\n  - Central bank\n  - Wage",
            'keywords = ["Inflation", "Central bank", "Wage"]',
            "✅ Inflation\n✅ Central bank\n✅ Wage",
            "🔑 Inflation\n🏦 Central bank\n💰 Wage",
            "Inflation\tCentral bank\tWage",
            "<ul>\n<li>Inflation</li>\n<li>Central bank</li>\n<li>Wage</li>\n</ul>",
            "'Inflation', 'Central bank', 'Wage'",
            "(Inflation, Central bank, Wage)",
            "Inflation - Central bank - Wage",
            (
                "Sure! Here are 3 keywords:\n\nInflation\n"
                "Central bank\nWage\n\nLet me know if you need more!"
            ),
        ],
    ),
    (
        ["敦煌", "壁画", "飞天"],
        [
            "【敦煌】【壁画】【飞天】",
            "敦煌/壁画/飞天",
            "敦煌 | 壁画 | 飞天",
            "#敦煌 #壁画 #飞天",
            "#敦煌# #壁画# #飞天#",
            "「敦煌」「壁画」「飞天」",
            "“敦煌”“壁画”“飞天”",
            "敦煌·壁画·飞天",
            "关键词：敦煌；壁画；飞天",
            "這段文字的關鍵詞是：敦煌、壁画、飞天。",
            "关键词有：敦煌、壁画、飞天",
            "标签：敦煌、壁画、飞天",
            "关键词一：敦煌\n关键词二：壁画\n关键词三：飞天",
            "关键词1：敦煌；关键词2：壁画；关键词3：飞天",
            "1. 敦煌：甘肃的城市\n2. 壁画：画在墙上\n3. 飞天：飞舞的神",
            "1. 敦煌（地名）\n2. 壁画（艺术）\n3. 飞天（形象）",
            "1. 敦煌——甘肃的城市\n2. 壁画——墙上的画\n3. 飞天——神",
            (
                "| 序号 | 关键词 | 说明 |\n|---|---|---|\n"
                "| 1 | 敦煌 | 甘肃省西部的城市 |\n| 2 | 壁画 | 画 |\n"
                "| 3 | 飞天 | 神 |"
            ),
            "①敦煌②壁画③飞天",
            "地点：敦煌\n主题：壁画、飞天",
            "敦煌 壁画 飞天",
            "《敦煌》《壁画》《飞天》",
            '{"关键字": ["敦煌", "壁画", "飞天"]}',
            '{"關鍵詞": "敦煌、壁画、飞天"}',
            "好的，以下是提取的关键词：\n敦煌、壁画、飞天",
            "一、敦煌\n二、壁画\n三、飞天",
            "敦煌，壁画，飞天。",
            "核心关键词：敦煌、壁画、飞天",
            "以下是5个关键词：敦煌、壁画、飞天",
            "<关键词>敦煌、壁画、飞天</关键词>",
            "关键词列表：\n- 敦煌\n- 壁画\n- 飞天\n\n这些关键词概括了原文的主要内容。",
        ],
    ),
    (
        ["solar panel", "inverter", "grid"],
        [
            "keywords: [solar panel, inverter, grid]",
            "Keywords - solar panel, inverter, grid",
            "The main keywords in this text are solar panel, inverter, and grid.",
            "The passage's keywords: solar panel, inverter, grid",
            "solar panel, inverter, grid, etc.",
            "- solar panel (noun)\n- inverter (noun)\n- grid (noun)",
            "1. solar panel\n\n2. inverter\n\n3. grid",
            "*solar panel*, *inverter*, *grid*",
            "• solar panel • inverter • grid",
            "solar panel\n---\ninverter\n---\ngrid",
            '{"keywords": "solar panel; inverter; grid"}',
            '{"keywords": ["solar panel, inverter, grid"]}',
            "```\nsolar panel, inverter, grid\n```",
            (
                "**1. solar panel**\nIt makes power from light.\n"
                "\n**2. inverter**\nIt converts the current.\n"
                "\n**3. grid**\nIt carries power."
            ),
            (
                "1. **solar panel**: It makes power.\n2. **inverter**: It converts.\n"
                "3. **grid**: It carries."
            ),
            (
                "### Keywords\n- solar panel\n- inverter\n"
                "- grid\n\n### Explanation\nThese terms matter."
            ),
            "<kw>solar panel</kw><kw>inverter</kw><kw>grid</kw>",
            "<item>solar panel</item>\n<item>inverter</item>\n<item>grid</item>",
            "solar panel,inverter,grid",
            '"solar panel", "inverter", "grid"',
            "1. solar panel, 2. inverter, 3. grid",
            "(1) solar panel; (2) inverter; (3) grid",
            "Keywords (3): solar panel, inverter, grid",
            "Solar power keywords: solar panel, inverter, grid",
            '["solar panel", "inverter", "grid"]\n\nThese are the keywords.',
            "{'solar panel', 'inverter', 'grid'}",
            "| solar panel | inverter | grid |",
            "| Keywords |\n|---|\n| solar panel |\n| inverter |\n| grid |",
            "1/ solar panel\n2/ inverter\n3/ grid",
        ],
    ),
    (
        ["光合作用", "叶绿素", "二氧化碳"],
        [
            "光合作用、叶绿素、二氧化碳等",
            (
                "关键词：\n1. 光合作用（photosynthesis）\n"
                "2. 叶绿素（chlorophyll）\n3. 二氧化碳（CO2）"
            ),
            "[光合作用][叶绿素][二氧化碳]",
            "光合作用\n叶绿素\n二氧化碳",
            "**光合作用**、**叶绿素**、**二氧化碳**",
            "1.光合作用 2.叶绿素 3.二氧化碳",
            "1、光合作用；2、叶绿素；3、二氧化碳",
            "光合作用\u3000叶绿素\u3000二氧化碳",
            "提取的关键词如下：光合作用、叶绿素、二氧化碳。",
            '"光合作用"，"叶绿素"，"二氧化碳"',
            "关键词：光合作用 叶绿素 二氧化碳",
            "關鍵詞：光合作用、叶绿素、二氧化碳",
            "好的，关键词为：光合作用、叶绿素、二氧化碳",
            "- 光合作用: 植物制造养分的过程\n- 叶绿素: 绿色色素\n- 二氧化碳: 原料",
            '{"关键词1": "光合作用", "关键词2": "叶绿素", "关键词3": "二氧化碳"}',
            "〔光合作用〕〔叶绿素〕〔二氧化碳〕",
            "光合作用|叶绿素|二氧化碳",
            "光合作用,叶绿素,二氧化碳",
            "光合作用 / 叶绿素 / 二氧化碳",
            "#光合作用\n#叶绿素\n#二氧化碳",
        ],
    ),
]

WITHOUT_KEYWORDS = [
    (
        "I'm sorry, but there is no passage in your message. Please provide the text "
        "from which I should extract keywords."
    ),
    (
        '{"code":"Arrearage","message":"Access denied, please make sure your '
        'account is in good standing.",'
        '"request_id":"f1c0b3f4-1111-9f8a-b0f2-2b7c1f3f8a11"}'
    ),
    "I'm sorry, I can't help with that.",
    "This passage is about the history of tea in China.",
    "很抱歉，您没有提供文段。",
    "Please provide the passage.",
    "I cannot extract keywords without a passage.",
    "文段为空，无法提取关键词。",
    "No passage provided.",
    "Error: rate limit reached",
    "抱歉，我无法提取关键词。",
    "Sorry, I need the passage first.",
    "没有提供文段。",
]


@pytest.mark.parametrize(
    ("reply", "keywords"), [*KEYWORDS, *((reply, words) for words, all in FORMS for reply in all)]
)
def test_parse_keywords_reads_usual_forms(reply: str, keywords: list[str]) -> None:
    assert parse_keywords(reply) == keywords


@pytest.mark.parametrize("reply", WITHOUT_KEYWORDS)
def test_reply_without_keywords_raises(reply: str) -> None:
    with pytest.raises(ValueError, match=r"answer|refused"):
        parse_keywords(reply)
