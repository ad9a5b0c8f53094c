"""Errors in one line, with a remedy."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodekin.adapters.cli.exit_status import ExitStatus, as_command_error, printable


def test_printable_replaces_control_characters():
    assert printable("a\x1b[2J\x9b茶\n\tb\x7f") == "a\ufffd[2J\ufffd茶\n\tb\ufffd"
    assert printable("abc\u202egpj.exe") == "abc\ufffdgpj.exe"


def server_error(status=None):
    kind = type("APIError", (Exception,), {"__module__": "openai._exceptions"})
    error = kind("Connection error.")
    error.request = SimpleNamespace(url="http://127.0.0.1:9/v1/chat/completions")
    if status is not None:
        error.status_code = status
    return error


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (None, "does not answer (Connection error.): is it running? OPENAI_BASE_URL"),
        (401, "rejects the key (status 401): set OPENAI_API_KEY"),
        (404, "has no such model or path (status 404): check the name of the model"),
        (500, "failed: Connection error."),
    ],
)
def test_server_error_names_address_variable_and_cause(status, cause):
    error = RuntimeError("the model failed")
    error.__cause__ = server_error(status)
    converted = as_command_error(error)
    assert converted.message.startswith(f"the model server http://127.0.0.1:9/v1 {cause}")
    assert converted.exit_code == 4


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("top_k"), 2),
        (FileNotFoundError("a"), 3),
        (ImportError("pip install"), 4),
    ],
)
def test_as_command_error_has_status_of_error(error, status):
    assert as_command_error(error).exit_code == status


def test_quickstart_documents_each_exit_status():
    page = Path(__file__).parents[3].joinpath("docs", "quickstart.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^\| ([0-9, ]+) \|", page, re.MULTILINE)
    assert [int(n) for row in numbers for n in row.split(",")] == [*map(int, ExitStatus)]
