"""What a file that somebody else wrote can make a command do: see docs/security.md."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import uvicorn
from page_client import Client
from scripted_server import ChatServer, serving

from nodekin.adapters.cli.trust import permissions
from nodekin.adapters.evaluation.setups import load_setup

pytestmark = [pytest.mark.allow_hosts(["127.0.0.1"]), pytest.mark.usefixtures("socket_enabled")]

KEY = "sk-of-the-user"

REPO = Path(__file__).parents[3]


class AnyServer(ChatServer):
    """Answer as a language model, an embedding model and a reranker."""

    def answer(self, body):
        if "documents" in body:
            scores = [{"index": i, "relevance_score": 1.0} for i in range(len(body["documents"]))]
            return {"results": scores}
        if "input" in body:
            items = [{"index": i, "embedding": [1.0, 0.5]} for i in range(len(body["input"]))]
            return {"object": "list", "model": "m", "data": items}
        return super().answer(body)

    @property
    def keys(self):
        return [headers.get("Authorization") for headers in self.headers]


@pytest.fixture
def server(here, monkeypatch):
    """Serve at the address that the files name; the user has a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "aws-of-the-user")
    with serving(AnyServer()) as server:
        yield server


@pytest.fixture
def somebody_else(monkeypatch):
    """Run as another user than the one who owns the files."""

    def become():
        monkeypatch.setattr(os, "getuid", lambda: 54321)

    return become


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def write_questions(path):
    """Write as many questions as tuning needs."""
    rows = [{"question": f"Which tea is {i}?", "document_ids": ["docs/tea.md"]} for i in range(20)]
    write(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def allow_as_told(nodekin, ran):
    """Run the command that a refusal ends with."""
    assert ran.status != 0
    assert len(ran.err.splitlines()) == 1, ran.err
    name, *arguments = shlex.split(ran.err.strip().rsplit(": ", 1)[1])
    assert name == "nodekin"
    allowed = nodekin(*arguments)
    assert (allowed.status, allowed.err) == (0, "")


def reranking(server, more=""):
    """Return a file of set-ups whose default one sends passages to a server."""
    return (
        f'[models.far]\nrerank = "m"\nbase_url = "{server.url}"\n{more}\n'
        '[setups.far]\ntype = "RerankRetriever"\n'
        'inner = {type = "DefaultRetriever"}\n'
        'reranker = {name = "ModuleReranker", model = "far"}\n'
    )


@pytest.mark.parametrize("table", ["", "[ask]\n"])
def test_the_server_of_a_settings_file_gets_no_key_until_it_is_allowed(
    nodekin, indexed, here, server, monkeypatch, table
):
    file = write(here / "nodekin.toml", f'{table}base-url = "{server.url}"\nmodel = "m"\n')
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    ran = nodekin("ask", "what", "is", "tea")
    assert ran.status == 4
    assert server.asked == []
    assert str(file) in ran.err
    assert KEY not in ran.err
    allow_as_told(nodekin, ran)
    ran = nodekin("ask", "what", "is", "tea")
    assert ran.status == 0
    assert server.keys == [f"Bearer {KEY}"]
    said = f"nodekin: {file} names the server: {server.url} gets your texts and the key in"
    assert ran.err.startswith(said)
    file.write_text(file.read_text().replace("/v1", "/v2"), encoding="utf-8")
    assert nodekin("ask", "what", "is", "tea").status == 4
    assert len(server.asked) == 1


def test_the_server_of_embeddings_gets_neither_key_nor_texts_until_it_is_allowed(
    nodekin, here, server
):
    write(here / "nodekin.toml", f'embed-base-url = "{server.url}"\nembed = "m"\n')
    ran = nodekin("index", "docs")
    assert (ran.status, server.asked) == (4, [])
    assert nodekin("search", "tea", "--in", "docs").status == 4
    assert server.asked == []
    allow_as_told(nodekin, ran)
    assert nodekin("index", "docs").status == 0
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_the_server_of_embeddings_of_agents_gets_neither_key_nor_texts(nodekin, here, server):
    write(here / "nodekin.toml", f'[mcp]\nembed-base-url = "{server.url}"\n')
    assert nodekin("index", "docs", "--embed", "m", "--embed-base-url", server.url).status == 0
    asked = len(server.asked)
    command = [sys.executable, "-m", "nodekin.adapters.cli", "mcp"]
    ran = subprocess.run(command, input=b"", capture_output=True, timeout=100)
    assert (ran.returncode, len(server.asked)) == (4, asked)
    assert b"nodekin trust" in ran.stderr


def test_without_a_key_another_machine_gets_no_texts(nodekin, here, monkeypatch):
    write(here / "nodekin.toml", 'base-url = "http://models.example.org/v1"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs")
    assert ran.status == 4
    assert "http://models.example.org/v1, which would get your texts; " in ran.err
    for address in ("http://127.0.0.1.example.org/v1", "http://127.0.0.1:1@example.org/"):
        write(here / "nodekin.toml", f'base-url = "{address}"\nmodel = "m"\n')
        ran = nodekin("ask", "tea?", "--in", "docs")
        assert "which would get your texts" in ran.err


def test_without_a_key_a_server_of_this_machine_is_used_and_named(
    nodekin, here, server, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY")
    file = write(here / "nodekin.toml", f'base-url = "{server.url}"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs", "--quiet")
    assert ran.status == 0
    assert ran.err == f"nodekin: {file} names the server: {server.url} gets your texts\n"


def test_what_the_person_names_needs_no_permission(nodekin, here, server, monkeypatch):
    write(here / "nodekin.toml", 'base-url = "http://127.0.0.1:1/v1"\nmodel = "m"\n')
    ran = nodekin("ask", "tea?", "--in", "docs", "--base-url", server.url)
    assert (ran.status, ran.err) == (0, "")
    assert server.keys == [f"Bearer {KEY}"]
    assert permissions() == []


@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"])
@pytest.mark.parametrize(
    "command",
    [
        ("search", "tea", "--setups", "setups.toml", "--in", "docs"),
        ("ask", "tea?", "--setups", "setups.toml", "--in", "docs"),
        ("eval", "setups.toml", "--data", "q.jsonl", "--docs", "docs"),
        ("tune", "setups.toml", "--data", "q.jsonl", "--docs", "docs", "--seconds", "1"),
    ],
)
def test_the_keys_that_setups_name_stay_here_until_they_are_allowed(
    nodekin, here, server, command, variable
):
    write(here / "setups.toml", reranking(server, f'api_key_env = "{variable}"'))
    write_questions(here / "q.jsonl")
    extra = ("--model", "m", "--base-url", server.url) if command[0] == "ask" else ()
    ran = nodekin(*command)
    assert (ran.status, server.asked) == (4, [])
    assert variable in ran.err
    assert os.environ[variable] not in ran.err
    allow_as_told(nodekin, ran)
    nodekin(*command, *extra)
    assert f"Bearer {os.environ[variable]}" in server.keys


def test_a_judge_of_a_file_gets_no_key_until_it_is_allowed(nodekin, here, server):
    models = f'[models.j]\nchat = "m"\nbase_url = "{server.url}"\napi_key_env = "OPENAI_API_KEY"\n'
    write(here / "setups.toml", models + '[setups.d]\ntype = "DefaultRetriever"\n')
    write(here / "q.jsonl", '{"question": "Which tea?", "document_ids": ["docs/tea.md"]}\n')
    command = ("eval", "setups.toml", "--data", "q.jsonl", "--docs", "docs", "--judge", "j")
    ran = nodekin(*command)
    assert (ran.status, server.asked) == (4, [])
    allow_as_told(nodekin, ran)
    nodekin(*command)
    assert f"Bearer {KEY}" in server.keys


def test_setups_that_the_page_finds_send_no_key_until_it_is_allowed(
    nodekin, here, server, monkeypatch
):
    monkeypatch.setenv("NODEKIN_SERVE_TOKEN", "")
    write(here / "setups.toml", reranking(server, 'api_key_env = "AWS_SECRET_ACCESS_KEY"'))
    answers = []

    def run(app, host, port, **config):
        client = Client(app, f"http://{host}:{port}")
        answers.append(client.post("/api/search", query="tea"))

    monkeypatch.setattr(uvicorn, "run", run)
    ran = nodekin("serve", "docs")
    assert ran.status == 0
    assert server.asked == []
    assert (answers[0].status_code, "nodekin trust" in answers[0].json()["error"]) == (502, True)
    told = next(line for line in ran.err.splitlines() if "nodekin trust" in line)
    nodekin(*shlex.split(told.rsplit(": ", 1)[1])[1:])
    assert nodekin("serve", "docs").status == 0
    assert answers[1].status_code == 200
    assert server.keys == ["Bearer aws-of-the-user"]


@pytest.mark.parametrize(
    ("variable", "status"), [("OPENAI_API_KEY", 0), ("AWS_SECRET_ACCESS_KEY", 4)]
)
def test_the_server_that_the_person_chose_gets_well_known_keys_only(
    nodekin, here, server, monkeypatch, variable, status
):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    text = reranking(server, f'api_key_env = "{variable}"').replace(
        f'base_url = "{server.url}"\n', ""
    )
    write(here / "setups.toml", text)
    command = ("search", "tea", "--setups", "setups.toml", "--in", "docs")
    ran = nodekin(*command)
    assert ran.status == status
    assert bool(server.asked) == (status == 0)
    if status:
        allow_as_told(nodekin, ran)
        assert nodekin(*command).status == 0
    assert server.keys == [f"Bearer {os.environ[variable]}"]


def test_a_program_that_names_a_file_has_said_so(here, server):
    write(here / "setups.toml", reranking(server, 'api_key_env = "OPENAI_API_KEY"'))
    load_setup("setups.toml", documents=["Tea is a drink."])("tea")
    assert server.keys == [f"Bearer {KEY}"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 4)])
def test_it_is_asked_at_a_terminal_once(nodekin, here, server, answer, status):
    write(here / "nodekin.toml", f'base-url = "{server.url}"\nmodel = "m"\n')
    import pty  # which is not everywhere

    command = [sys.executable, "-m", "nodekin.adapters.cli", "ask", "tea?", "--in", "docs", "-q"]
    mine, terminal = pty.openpty()
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal) as run:
        os.close(terminal)
        told = b""
        while b"[y/N]" not in told:
            told += os.read(mine, 1000)
        assert server.asked == []
        os.write(mine, f"{answer}\n".encode())
        assert run.wait(100) == status
    os.close(mine)
    assert "which would get your texts and the key in OPENAI_API_KEY" in told.decode()
    assert len(server.asked) == (status == 0)
    assert nodekin("ask", "tea?", "--in", "docs").status == status


def test_files_above_the_repository_are_not_read(nodekin, indexed, here, monkeypatch):
    file = write(here / "nodekin.toml", "[search]\ntop-k = 1\n")
    inner = here / "clone" / "src"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1
    (here / "clone" / ".git").mkdir()
    ran = nodekin("search", "steamed 陆羽")
    assert ran.status == 3
    assert f"{file} is not read: it lies above the repository {here / 'clone'}" in ran.err
    assert f"{here / '.nodekin'} is not read: it lies above the repository" in ran.err
    for line in ran.err.splitlines():
        assert nodekin(*shlex.split(line.rsplit(": ", 1)[1])[1:]).status == 0
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1


def test_files_above_the_home_folder_are_not_read(nodekin, indexed, here, monkeypatch):
    (here / "home" / "notes").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(here / "home"))
    monkeypatch.chdir(here / "home" / "notes")
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "it lies above your home folder" in ran.err


def test_files_of_another_user_are_not_read(nodekin, indexed, here, somebody_else):
    file = write(here / "nodekin.toml", "[search]\ntop-k = 1\n")
    somebody_else()
    for command in (["search", "tea"], ["index"], ["index", "docs"], ["list"], ["serve"], ["mcp"]):
        ran = nodekin(*command)
        assert ran.status == 3, command
        assert f"{file} is not read: it belongs to another user" in ran.err
        assert f"{here / '.nodekin'} is not read: it belongs to another user" in ran.err
    nodekin("trust", ".nodekin")
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] > 1
    nodekin("trust", "nodekin.toml")
    assert nodekin("search", "steamed 陆羽", "--json").json["count"] == 1
    nodekin("trust", ".nodekin", "--forget")
    assert nodekin("search", "tea").status == 3


def test_setups_of_another_user_are_read_where_they_are_named(nodekin, here, somebody_else):
    write(here / "setups.toml", '[setups.a]\ntype = "DefaultRetriever"\n')
    somebody_else()
    ran = nodekin("serve", "docs")
    assert ran.status == 2
    assert "setups.toml is not read: it belongs to another user" in ran.err
    assert nodekin("search", "tea", "--in", "docs", "--setups", "setups.toml").status == 0


def test_an_index_reads_no_folder_elsewhere_that_the_person_has_not_named(
    nodekin, here, monkeypatch
):
    (here / "private").mkdir()
    diary = write(here / "private" / "diary.md", "The old secret of Anna.")
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    assert nodekin("index", here / "private").status == 0
    assert nodekin("index").status == 0  # which the person has named
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "of another person"))
    write(diary, "The new secret of Anna.")
    ran = nodekin("index")
    assert ran.status == 3
    assert f"names {here / 'private'}, which is outside of {here / 'clone'}" in ran.err
    assert "new secret" not in nodekin("search", "secret Anna").out
    allow_as_told(nodekin, ran)
    assert nodekin("index").status == 0
    assert "new secret" in nodekin("search", "secret Anna").out


@pytest.mark.parametrize("table", ['source = "../private"', 'store = "../private/graph.sqlite"'])
def test_setups_name_no_folder_elsewhere_that_is_not_allowed(nodekin, here, monkeypatch, table):
    (here / "private").mkdir()
    write(here / "private" / "diary.md", "The secret of Anna.")
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    write(
        here / "clone" / "setups.toml", f'[graph]\n{table}\n[setups.a]\ntype = "DefaultRetriever"'
    )
    command = ("search", "secret", "--setups", "setups.toml")
    ran = nodekin(*command)
    assert ran.status == 3
    assert not (here / "private" / "graph.sqlite").exists()
    allow_as_told(nodekin, ran)
    assert nodekin(*command).status == (0 if "source" in table else 1)


@pytest.mark.parametrize("option", ["store", "in", "setups"])
def test_settings_name_no_folder_elsewhere_that_is_not_allowed(nodekin, here, monkeypatch, option):
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    write(here / "clone" / "nodekin.toml", f'[search]\n{option} = "../docs"\n')
    ran = nodekin("search", "tea")
    assert ran.status == 3
    assert "nodekin trust" in ran.err
    allow_as_told(nodekin, ran)
    assert "trust" not in nodekin("search", "tea").err


@pytest.mark.parametrize(
    "table", ['embed = "sentence-transformers:./model"', 'embed = "far"\n[models.far]\nembed = '
    '"sentence-transformers:a/b"\ntrust_remote_code = true']
)  # fmt: skip
def test_a_model_that_may_bring_code_is_not_opened_until_it_is_allowed(nodekin, here, table):
    (here / "model").mkdir()
    write(here / "setups.toml", f'[setups.a]\ntype = "DefaultRetriever"\n[graph]\n{table}\n')
    command = ("search", "tea", "--in", "docs", "--setups", "setups.toml")
    ran = nodekin(*command)
    assert ran.status == 4
    assert "which may bring programs that run here" in ran.err
    allow_as_told(nodekin, ran)
    assert "nodekin trust" not in nodekin(*command).err


def test_the_model_of_an_index_of_others_is_not_opened_until_it_is_allowed(indexed, here):
    (here / "model").mkdir()
    file = here / ".nodekin" / "index.json"
    record = {**json.loads(file.read_text("utf-8")), "embed": "sentence-transformers:./model"}
    write(file, json.dumps(record))
    for command in (["search", "tea"], ["index"], ["mcp", "--http"], ["serve"]):
        ran = indexed(*command)
        assert ran.status == 4, command
        assert "which may bring programs that run here" in ran.err


def test_doctor_says_what_was_read_from_where(indexed, here, server):
    file = write(here / "nodekin.toml", f'[ask]\nbase_url = "{server.url}"\n')
    setups = write(here / "setups.toml", reranking(server, 'api_key_env = "OPENAI_API_KEY"'))
    told = indexed("doctor").out
    assert f"settings: {file}" in told
    assert f"setups: {setups}, which nodekin serve opens" in told
    command = f"nodekin trust {{}} {server.url} --key OPENAI_API_KEY"
    for path in (file, setups):
        (line,) = (x for x in told.splitlines() if x.endswith(command.format(path)))
        assert line.startswith("missing")
        indexed(*shlex.split(command.format(path))[1:])
        assert f"server: {server.url}, which {path} names" in indexed("doctor").out
    assert re.search(rf"documents, .* in {re.escape(str(here / '.nodekin'))}", told)
    listed = indexed("trust").out.splitlines()
    assert listed == [f"{p}  {server.url}  OPENAI_API_KEY" for p in (file, setups)]


def test_what_is_tuned_may_name_what_the_person_has_named(nodekin, here, monkeypatch, server):
    (here / "clone").mkdir()
    monkeypatch.chdir(here / "clone")
    write_questions(here / "clone" / "q.jsonl")
    command = ("tune", "--data", "q.jsonl", "--docs", "../docs", "--seconds", "1")
    assert nodekin(*command).status in (0, 1)
    assert nodekin("search", "tea", "--setups", "tuned.toml").status == 0


def test_damaged_permissions_allow_nothing(nodekin, here, server, tmp_path_factory):
    write(here / "nodekin.toml", f'base-url = "{server.url}"\nmodel = "m"\n')
    config = here.parent / os.environ["XDG_CONFIG_HOME"] / "nodekin"
    config.mkdir(parents=True)
    for text in ("{", "[1]", '[["a", "b", "c", "d"]]', '{"a": 1}'):
        write(config / "trusted.json", text)
        ran = nodekin("ask", "tea?", "--in", "docs")
        assert ran.status == 2
        assert "trusted.json" in ran.err
    assert server.asked == []


def test_every_row_of_the_threat_model_has_its_tests() -> None:
    page = (REPO / "docs" / "security.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.count(" | ") == 3][1:]
    tests = "".join(p.read_text("utf-8") for p in (REPO / "tests").rglob("test_*.py"))
    assert len(rows) >= 15
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row.rsplit(" | ", 1)[1])
        assert names, row
        assert all(f"def {name}(" in tests for name in names), row
