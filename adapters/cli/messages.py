"""The most frequent lines of the command line, in English and Chinese."""

from __future__ import annotations

import os

_MESSAGES = {
    "indexed": (
        "{count:,} document{s} in {folder}: {changes}",
        "{folder} 有 {count:,} 篇文档：{changes}",
    ),
    "unchanged": ("nothing has changed", "没有变化"),
    "added": ("added", "新增"),
    "changed": ("changed", "修改"),
    "gone": ("removed", "移除"),
    "renamed": ("renamed", "改名"),
    "kept": ("unchanged", "未变"),
    "unread": ("files left out", "未读取"),
    "left out": ("left out: {reason}", "未读取：{reason}"),
    "removed": (
        "removed {count:,} document{s}; {rest:,} left",
        "移除了 {count:,} 篇文档，还有 {rest:,} 篇",
    ),
    "nothing found": (
        "nothing found for {query!r} in {count:,} document{s}",
        "在 {count:,} 篇文档中没有找到 {query!r}",
    ),
    "empty query": ("the query is empty; say what to look for", "查询是空的，请写明要找什么"),
    "no index": (
        "there is no index (.nodekin) in {folder} or, inside its repository or your home "
        "directory, above; make one: nodekin index FOLDER; or search a folder: --in FOLDER",
        "{folder} 及其上级目录（同一仓库或主目录内）没有索引（.nodekin）；"
        "先建立索引：nodekin index 文件夹；或直接搜索文件夹：--in 文件夹",
    ),
    "stale": (
        "files newer than the index: {count:,}; nodekin index reads them",
        "有 {count:,} 个文件比索引新，运行 nodekin index 读取",
    ),
    "words only": (
        "{count:,} sentences have no embedding yet, so only words are compared; nodekin index "
        "continues embedding",
        "还有 {count:,} 个句子没有向量，目前只按词搜索；运行 nodekin index 继续",
    ),
    "estimate": (
        "embedding {count:,} sentences takes about {time}; searches compare words meanwhile, and "
        "an interrupted run continues",
        "为 {count:,} 个句子计算向量大约需要 {time}；其间可以按词搜索，中断后会接着做",
    ),
    "model problem": ("embedding model: {reason}", "向量模型：{reason}"),
    "more sources": ("+ {count} more read, not cited", "另外读了 {count} 个来源，未引用"),
    "no model": (
        "a language model is needed: set {missing}; nodekin search needs none",
        "需要语言模型：请设置 {missing}；nodekin search 不需要模型",
    ),
}


def message(name: str, **values: object) -> str:
    """Return a message in the language of the locale.

    Example:
        >>> message("more sources", count=5)  # doctest: +SKIP
        '+ 5 more read, not cited'
    """
    plural = "" if values.get("count") == 1 else "s"
    return _MESSAGES[name][is_chinese()].format(s=plural, **values)


def is_chinese() -> bool:
    """Return whether the locale is Chinese."""
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return next(filter(None, names), "").lower().startswith("zh")
