"""Errors in one line."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodekin.adapters.cli.messages import ExitStatus, as_command_error


@pytest.mark.parametrize(
    ("status", "cause", "chinese"),
    [
        (
            None,
            "does not answer (Connection error.): is it running? OPENAI_BASE_URL",
            "没有应答（Connection error.）：它启动了吗？",
        ),
        (
            401,
            "rejects the key (status 401): set OPENAI_API_KEY",
            "拒绝了密钥（状态 401）：请设置 OPENAI_API_KEY",
        ),
        (
            403,
            "rejects the key (status 403): set OPENAI_API_KEY",
            "拒绝了密钥（状态 403）：请设置 OPENAI_API_KEY",
        ),
        (
            404,
            "has no such model or path (status 404): check the name of the model",
            "没有这个模型或路径（状态 404）：请检查模型的名字",
        ),
        (500, "failed: Connection error.", "出错：Connection error."),
        (429, "failed: Connection error.", "出错：Connection error."),
    ],
)
def test_server_error_names_address_variable_and_cause(status, cause, chinese, monkeypatch):
    error = RuntimeError("the model failed")
    kind = type("APIError", (Exception,), {"__module__": "openai._exceptions"})
    error.__cause__ = kind("Connection error.")
    error.__cause__.request = SimpleNamespace(url="http://127.0.0.1:9/v1/chat/completions")
    error.__cause__.status_code = status
    converted = as_command_error(error)
    assert converted.message.startswith(f"the model server http://127.0.0.1:9/v1 {cause}")
    assert converted.exit_code == 4
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert as_command_error(error).message.startswith(f"模型服务 http://127.0.0.1:9/v1 {chinese}")


@pytest.mark.parametrize(
    ("error", "status"),
    [(ValueError("top_k"), 2), (FileNotFoundError("a"), 3), (ImportError("pip install"), 4)],
)
def test_as_command_error_has_status_of_error(error, status):
    assert as_command_error(error).exit_code == status


def test_quickstart_documents_each_exit_status():
    page = Path(__file__).parents[3].joinpath("docs", "quickstart.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^\| ([0-9, ]+) \|", page, re.MULTILINE)
    assert [int(n) for row in numbers for n in row.split(",")] == [*map(int, ExitStatus)]
