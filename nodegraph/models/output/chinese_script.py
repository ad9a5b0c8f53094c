"""Compile patterns that match simplified and traditional Chinese characters alike."""

from __future__ import annotations

import re

# Simplified characters of the words that models write around their answers, each followed by its
# traditional forms.
_FORMS = (
    "两兩 个個箇 为為爲 么麼麽 义義 于於 从從 们們 优優 会會 体體 修脩",
    "关關 兴興 内內 写寫 准準 几幾 出齣 则則 制製 办辦 务務 动動 协協",
    "单單 参參 发發 变變 叶葉 号號 后後 吗嗎 回迴 处處 备備 复復複 够夠",
    "实實 对對 导導 将將 尽儘盡 帮幫 并並併 应應 异異 当當 径徑 总總 户戶",
    "拦攔 择擇 换換 据據 数數 断斷 无無 时時 显顯 暂暫 术術 条條 来來",
    "查査 标標 样樣 档檔 检檢 汇匯彙滙 没沒 注註 满滿 滤濾 点點 独獨 现現",
    "真眞 码碼 确確 种種 称稱 筛篩 简簡 系係 级級 细細 终終 绍紹 经經",
    "结結 给給 络絡 统統 继繼 续續 编編 缩縮 网網 范範 获獲 虽雖 补補",
    "表錶 规規 视視 览覽 认認 讨討 记記 讲講 许許 论論 访訪 词詞 译譯",
    "试試 话話 询詢 该該 详詳 语語 误誤 说說説 请請 谁誰 调調 谈談 谢謝",
    "败敗 质質 资資 载載 输輸 达達 过過 运運 还還 这這 进進 远遠 违違",
    "连連 选選 遗遺 采採 释釋 针針 错錯 键鍵 长長 问問 难難 项項 须須",
    "频頻 题題 额額 饮飲 骤驟 黄黃 与與 积積 笼籠 签簽籤 节節 荐薦 让讓 识識",
    "较較 陈陳",
    "产產産 价價 传傳 决決 别別彆 国國 声聲 家傢 属屬 念唸 机機 极極 构構 核覈",
    "测測 烦煩 类類 约約 组組 织織 综綜 致緻 虚虛 见見 计計 证証證 评評 诉訴",
    "贴貼 里裡裏 间間 随隨",
)

_TRADITIONAL = {forms[0]: forms[1:] for forms in " ".join(_FORMS).split()}

_SIMPLIFIED: dict[int, str] = {}
for _simple, _traditional_forms in _TRADITIONAL.items():
    _SIMPLIFIED.update(str.maketrans(dict.fromkeys(_traditional_forms, _simple)))


def chinese_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Compile a pattern whose simplified Chinese characters also match their traditional forms.

    Args:
        pattern: The regular expression.
        flags: The flags of ``re.compile``.

    Example:
        >>> chinese_pattern("问题[:：]").match("問題：").end()
        3
    """
    parts: list[str] = []
    is_in_set = False
    is_escaped = False
    for character in pattern:
        forms = _TRADITIONAL.get(character, "")
        parts.append(character + forms if is_in_set or not forms else f"[{character}{forms}]")
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == "[":
            is_in_set = True
        elif character == "]":
            is_in_set = False
    return re.compile("".join(parts), flags)


def simplified(text: str) -> str:
    """Replace the traditional characters of the table by simplified characters.

    Example:
        >>> simplified("子問題")
        '子问题'
    """
    return text.translate(_SIMPLIFIED)
