import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from nodekin.nodegraph.lazy_names import plugins

REPO = Path(__file__).parents[3]
MODULE = [sys.executable, "-m", "nodekin"]


def test_no_arguments_show_help_in_groups(nodekin):
    ran = nodekin()
    assert ran.status == 0
    assert ran.out == nodekin("--help").out
    sections = re.findall(r"^  (Documents|Servers|Quality):\n((?:    .*\n)+)", ran.out, re.M)
    names = {title: [row.split()[0] for row in rows.splitlines()] for title, rows in sections}
    assert names["Documents"] == DOCUMENTS
    assert {*COMMANDS} <= {name for group in names.values() for name in group}


DOCUMENTS = "index search ask list show remove status".split()
COMMANDS = [*DOCUMENTS, *sorted(plugins("nodekin.commands"))]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_command_is_short(nodekin, command):
    out = nodekin(command, "--help").out
    assert out.startswith(f"Usage: nodekin {command} [OPTIONS]")
    assert len(out.splitlines()) < 75
    assert nodekin("--version").out.startswith("nodekin, version ")


@pytest.mark.slow
def test_shell_completion():
    quickstart = (REPO / "docs" / "quickstart.md").read_text(encoding="utf-8")
    assert "_NODEKIN_COMPLETE=bash_source nodekin" in quickstart
    program = "from nodekin.adapters.cli import main; import sys; sys.argv[0] = 'nodekin'; main()"
    for shell in ("bash", "zsh", "fish"):
        environment = {**os.environ, "_NODEKIN_COMPLETE": f"{shell}_complete"}
        environment |= {"COMP_WORDS": "nodekin se", "COMP_CWORD": "1" if shell != "fish" else "se"}
        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment
        )
        assert ran.returncode == 0, ran.stderr
        assert "search" in ran.stdout
        assert ("serve" in ran.stdout) == ("serve" in COMMANDS)
        assert "index" not in ran.stdout.split()


def test_unknown_command_or_option_is_one_line(nodekin):
    ran = nodekin("serch", "tea")
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    assert "the command must be search" in ran.err  # without the page, no "or serve"
    assert ", got 'serch'" in ran.err
    assert "the command must be index, search, ask, list, " in nodekin("qqqqq").err
    ran = nodekin("search", "--topk", "3", "tea")
    assert ran.status == 2
    assert "--top-k" in ran.err
    assert "nodekin search --help" in ran.err
    ran = nodekin("search", "--where", "x", "tea")
    assert ran.err.count("--help") == 1  # the help is no replacement for the option


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nsys.argv = ['nodekin', '--help']\n"
        "from nodekin.adapters.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('numpy', 'faiss', 'openai', 'sqlite3', 'tqdm', 'Stemmer', 'asyncio') "
        "or m.startswith(('nodekin.nodegraph.', 'nodekin.retrievers'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    registry = ["nodekin.nodegraph.lazy_names"]
    assert done.stdout.splitlines()[-1] == str(registry)


def test_query_that_starts_with_dash_has_hint(nodekin, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["nodekin", "search", "-v flag"])
    ran = nodekin("search", "-v flag")
    assert ran.status == 2
    assert 'a text that starts with a dash: nodekin search -- "-v flag"' in ran.err


def test_internal_error_has_status_70(nodekin, monkeypatch):
    def broken(*_, **__):
        raise KeyError("oops")

    monkeypatch.setattr("nodekin.adapters.cli.search_command.DefaultRetriever", broken)
    ran = nodekin("search", "tea", "--in", "docs")
    assert ran.status == 70
    assert "KeyError: 'oops'" in ran.err
    assert ran.err.endswith("nodekin: this is a bug: report it with the lines above\n")


def test_closed_pipe_is_quiet(here):
    text = "\n\n".join(f"Tea number {n} is green." for n in range(3000))
    (here / "docs" / "long.txt").write_text(text, encoding="utf-8")
    with subprocess.Popen(
        [*MODULE, "search", "tea", "--in", "docs", "-k", "3000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=here,
    ) as process:
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(600) == 141


@pytest.mark.parametrize("arguments", ["search tea --in docs", "--help", "index docs"])
def test_closed_output_is_one_line(here, arguments):
    done = _in_shell(f'"$0" -m nodekin {arguments} >&-', here)
    assert done.returncode == 141
    assert done.stderr == (
        "nodekin: standard output is closed; send it to a file, or to /dev/null\n"
    )
    assert not (here / ".nodekin").exists()


def test_closed_input_is_empty(here):
    done = _in_shell('"$0" -m nodekin search - --in docs <&-', here)
    assert done.stderr == "nodekin: the query is empty; say what to look for\n"
    assert done.returncode == 1


def test_closed_errors_are_discarded(here):
    done = _in_shell('"$0" -m nodekin search zebra --in docs 2>&-', here)
    assert (done.returncode, done.stdout) == (1, "")


def _in_shell(command, folder):
    return subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("encoding", "shown", "expected"),
    [
        (None, "utf-8", "《茶经》"),
        ("latin-1", "latin-1", "??"),
        ("gb18030", "gb18030", "《茶经》"),
    ],
)
def test_output_uses_encoding_or_utf_8(here, encoding, shown, expected):
    environment = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    command = [*MODULE, "search", "-", "--in", "docs"]
    if encoding is not None:
        environment["PYTHONIOENCODING"] = encoding
        command[-3] = "茶经"
    query = "茶经".encode()
    done = subprocess.run(command, capture_output=True, cwd=here, env=environment, input=query)
    assert done.returncode == 0
    assert expected in done.stdout.decode(shown)


BASE_INSTALL = """
import sys
for name in ("anyio", "jinja2", "mcp", "openai", "starlette", "uvicorn"):
    sys.modules[name] = None
from nodekin.adapters.cli import main
main()
"""


needs_servers = pytest.mark.skipif(
    "mcp" not in entry_points(group="nodekin.commands").names,
    reason="the components for servers are missing",
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        pytest.param(["mcp", "docs"], "mcp", marks=needs_servers),
        pytest.param(["mcp", "docs", "--http"], "mcp", marks=needs_servers),
        pytest.param(["serve", "docs"], "serve", marks=needs_servers),
        (["ask", "tea?", "--in", "docs", "--model", "m"], "openai"),
    ],
)
def test_command_without_packages_names_its_extra(here, command, name):
    environment = {**os.environ, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = subprocess.run(
        [sys.executable, "-c", BASE_INSTALL, *command],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4
    assert done.stderr.endswith(f'get it with: pip install "nodekin[{name}]"\n')


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("chat", "ask --chat"),
        ("query", "search"),
        ("Query", "search"),
        ("update", "index"),
        ("rm", "remove"),
        ("ls", "list"),
    ],
)
def test_unknown_command_error_names_ours(nodekin, given, ours):
    ran = nodekin(given, "tea")
    assert ran.status == 2
    assert f"the command must be {ours}, got {given!r}" in ran.err
