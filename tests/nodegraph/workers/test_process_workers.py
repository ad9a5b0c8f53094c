"""What is built by processes is what is built without them, each call is made once."""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import worker_transforms
from worker_transforms import HeavyModel, Noted, around, awkward, notes

from nodekin.nodegraph import (
    Document,
    Embedder,
    EmbeddingError,
    LLMExtractor,
    MarkdownSplitter,
    NodeGraph,
    NodeStore,
    SentenceSplitter,
    TransformError,
)
from nodekin.nodegraph.node import LinkedText
from nodekin.nodegraph.workers.process_workers import ProcessWorkers, as_workers
from nodekin.nodegraph.workers.remote_calls import RemoteTraceback

PATIENCE = 300.0
"""Seconds after which something that should happen is taken to hang."""

DOCUMENTS = [
    *[Document(f"tea {i}\nleaf {i} of tea", {"number": i}, id=f"{i}.txt") for i in range(12)],
    Document(
        "# Rivers\n\nThe Nile is long. 长江很长。它在中国。", {"title": "River"}, id="river.md"
    ),
    Document("", id="empty.txt"),
]


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessWorkers]:
    with ProcessWorkers(2) as workers:
        yield workers


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def content(graph: NodeGraph, *groups: str) -> list[Any]:
    """Return all that is stored of groups, in order."""
    return [
        [
            (
                *(node.id, node.text, node.content, node.start, node.end, node.order),
                *(node.parent_id, node.metadata, node.own_metadata, node.searched_text),
                [(link.target, link.type) for link in node.links],
            )
            for node in graph.nodes(group)
        ]
        for group in groups
    ]


def rich_graph(store: NodeStore | Path | None = None) -> NodeGraph:
    def lengths(texts: list[str]) -> list[list[float]]:
        return [[len(text), text.count("a") + 0.5] for text in texts]

    graph = NodeGraph(store=store, progress=False, embed=Embedder(lengths, "lengths", batch_size=5))
    graph.add(DOCUMENTS)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", lambda text: text.split(), parent="line")
    graph.create_node_group("around", around, parent="word", trans_node=True)
    graph.create_node_group("sentence", SentenceSplitter, chunk_size=8, chunk_overlap=2)
    patterns = [("*.md", MarkdownSplitter()), ("0.txt", None), ("*", str.splitlines)]
    graph.create_node_group("by_name", patterns)
    graph.create_node_group(
        "all", lambda nodes: [LinkedText(f"{len(nodes)} lines", nodes)], "line", scope="group"
    )
    return graph


GROUPS = ("line", "word", "around", "sentence", "by_name", "all")


@pytest.mark.slow
@pytest.mark.usefixtures("every_store")
def test_it_is_what_one_process_builds(workers: ProcessWorkers) -> None:
    with rich_graph() as alone, rich_graph() as together:
        alone.build(*GROUPS, embed=True)
        together.build(*GROUPS, embed=True, workers=workers)
        assert content(together, *GROUPS) == content(alone, *GROUPS)
        assert any(node.links for node in together.nodes("around"))
        for graph in (alone, together):
            graph.add(Document("tea 3\nanother leaf", {"number": 3}, id="3.txt"))
            graph.remove("5.txt")
        alone.build(*GROUPS)
        together.build(*GROUPS, workers=workers)
        assert content(together, *GROUPS) == content(alone, *GROUPS)
        kind = "embedding lengths"
        vectors = [graph._store.get_values(kind) for graph in (alone, together)]
        assert vectors[0] == vectors[1]
        assert len(vectors[0]) > 40


def test_a_number_of_workers_is_enough(log: Path) -> None:
    graph = NodeGraph(progress=False)
    graph.add([f"tea {i}" for i in range(10)])
    graph.create_node_group("word", Noted(log))
    assert graph.build("word", workers=2) == []
    processes = {process for process, _ in notes(log)}
    assert os.getpid() not in processes
    assert 1 <= len(processes) <= 2
    for process in processes:
        wait_for_end_of(process)


def wait_for_end_of(process: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"process {process} is still there")


def test_nothing_is_built_where_a_transform_cannot_be_sent(workers: ProcessWorkers) -> None:
    lock = threading.Lock()
    graph = NodeGraph(progress=False)
    graph.add("one two")
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("locked", lambda text: [text, str(lock)], parent="line")
    with pytest.raises(TypeError) as error:
        graph.build("locked", workers=workers)
    assert "the transform of group 'locked' can't be sent to another process" in str(error.value)
    assert "cannot pickle '_thread.lock' object" in str(error.value)
    assert "num_workers=8" in str(error.value)
    assert not graph.groups["line"].built


def test_no_process_gets_a_copy_of_the_graph(workers: ProcessWorkers) -> None:
    graph = NodeGraph(progress=False)
    graph.add("one two")
    graph.create_node_group("copy", lambda text: [text, repr(graph)])
    with pytest.raises(TypeError, match=r"a graph stays in its process; .* asks node\.graph"):
        graph.build("copy", workers=workers)


def test_what_waits_runs_in_threads_and_what_sees_a_group_here(workers: ProcessWorkers) -> None:
    here = []
    lock = threading.Lock()  # which no other process could have

    def note(text: Any) -> list[str]:
        with lock:
            here.append(os.getpid())
        return [str(text)]

    graph = NodeGraph(
        progress=False,
        embed=Embedder(lambda t: [note(t) and [1.0]] * len(t), "x", num_workers=2, batch_size=1),
    )
    graph.add(["one", "two"])
    graph.create_node_group("waits", note, num_workers=2)
    graph.create_node_group("all", note, scope="group", trans_node=False)
    graph.build("waits", "all", workers=workers, embed=True)
    assert set(here) == {os.getpid()}
    assert len(here) == 2 + 1 + 3


def test_an_error_says_where_it_was_raised(log: Path, workers: ProcessWorkers) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=text) for text in ("a b", "bad news", "c d")])
    graph.create_node_group("word", Noted(log, bad="bad"), version="1")
    with pytest.raises(TransformError) as error:
        graph.build("word", workers=workers)
    assert error.value.document == "bad news"
    assert "ValueError: can't stand 'bad'; mend it and ask again" in str(error.value)
    cause = error.value.__cause__
    assert isinstance(cause, ValueError)
    assert isinstance(cause.__cause__, RemoteTraceback)
    trace = str(cause.__cause__)
    assert "worker_transforms.py" in trace
    assert 'raise ValueError(f"can\'t stand {self.bad!r}")' in trace

    before = len(notes(log))
    failures = graph.build("word", workers=workers, on_error="skip")
    assert [failure.document for failure in failures] == ["bad news"]
    assert [node.text for node in graph.nodes("word")] == ["a", "b", "c", "d"]
    tried = Counter(text for _, text in notes(log)[:before])
    again = Counter(text for _, text in notes(log)[before:])
    assert not again.keys() & tried.keys() - {"bad news"}, "what was there is made again"


def test_an_error_that_does_not_travel_says_the_same(workers: ProcessWorkers) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("oh", id="1"))
    graph.create_node_group("word", awkward)
    messages = []
    for processes in (None, workers):
        with pytest.raises(TransformError) as error:
            graph.build("word", workers=processes)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "AwkwardError: oh (7)" in messages[0]


def test_what_cannot_come_back_or_be_loaded_is_the_error_of_its_document(
    workers: ProcessWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("x", id="1"))
    graph.create_node_group(
        "file", lambda text: [worker_transforms.Node(text, content=threading.Lock())]
    )
    with pytest.raises(TransformError, match=r"cannot pickle '_thread\.lock'"):
        graph.build("file", workers=workers)

    def here_only(text: str) -> list[str]:
        return [text]

    here_only.__module__, here_only.__qualname__ = "only_here", "here_only"
    module = type(sys)("only_here")
    module.here_only = here_only  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "only_here", module)
    graph.create_node_group("here", here_only)
    with pytest.raises(TransformError, match=r"can't load it: ModuleNotFoundError: .*only_here"):
        graph.build("here", workers=workers)


def test_a_process_that_has_answered_ends_in_order(tmp_path: Path) -> None:
    def noting(text: str) -> list[str]:
        atexit.register((tmp_path / "ended").touch)
        return [text]

    graph = NodeGraph(progress=False)
    graph.add("a")
    graph.create_node_group("word", noting)
    with ProcessWorkers(1) as workers:
        graph.build("word", workers=workers)
    assert (tmp_path / "ended").exists()


def test_a_process_that_is_killed_takes_one_document_with_it(workers: ProcessWorkers) -> None:
    def crash(text: str) -> list[str]:
        if text == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if text == "exit":
            os._exit(3)
        return [text]

    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=text) for text in ("a", "crash", "b", "exit", "c")])
    graph.create_node_group("word", crash)
    killed, ended = graph.build("word", workers=workers, on_error="skip")
    assert [killed.document, ended.document] == ["crash", "exit"]
    assert "ended by SIGKILL, as the system sends it where memory runs out" in str(killed.error)
    assert "ended with status 3" in str(ended.error)
    assert [node.text for node in graph.nodes("word")] == ["a", "b", "c"]


def test_what_a_transform_prints_or_reads_is_no_message(
    workers: ProcessWorkers, capfd: pytest.CaptureFixture[str]
) -> None:
    def loud(text: str) -> list[str]:
        sys.stdout.write(f"printed {text}\n")
        sys.stdout.flush()
        os.write(1, b"written\n")
        return [text, sys.stdin.read() + "nothing read"]

    with ProcessWorkers(1) as own:
        graph = NodeGraph(progress=False)
        graph.add("tea")
        graph.create_node_group("loud", loud)
        graph.build("loud", workers=own)
    assert [node.text for node in graph.nodes("loud")] == ["tea", "nothing read"]
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == "printed tea\nwritten\n"


@pytest.mark.slow
def test_equal_prompts_are_paid_for_once_by_all_processes(log: Path, tmp_path: Path) -> None:
    texts = [f"text {'x' * (i % 4)}" for i in range(24)]
    path = tmp_path / "graph.db"
    for wait in (1, 2):
        with NodeGraph(store=path, progress=False) as graph:
            graph.add([Document(text, id=str(i)) for i, text in enumerate(texts)])
            graph.create_node_group(f"summary{wait}", LLMExtractor(Noted(log), "summary"))
            graph.build(f"summary{wait}", workers=4)
            assert graph.groups[f"summary{wait}"].size == 24
    assert len(notes(log)) == len({text for _, text in notes(log)}) == 4


@pytest.mark.parametrize("in_threads", [True, False])
@pytest.mark.usefixtures("every_store")
def test_what_others_make_while_one_fails_is_kept(
    in_threads: bool, log: Path, tmp_path: Path, workers: ProcessWorkers
) -> None:
    failed, begun = tmp_path / "failed", tmp_path / "begun"

    def dear(text: str) -> list[str]:
        if text == "dear":
            Noted(log).note(text)
            begun.touch()
            while not failed.exists():
                time.sleep(0.01)
        elif not failed.exists():
            while not begun.exists():
                time.sleep(0.01)
            failed.touch()
            raise ValueError("once")
        return [text]

    graph = NodeGraph(progress=False)
    graph.add([Document("cheap", id="1"), Document("dear", id="2")])
    graph.create_node_group("word", dear, num_workers=2 if in_threads else 0, version="1")
    with pytest.raises(TransformError, match="once"):
        graph.build("word", workers=workers)
    graph.build("word", workers=workers)
    assert [node.text for node in graph.nodes("word")] == ["cheap", "dear"]
    assert [text for _, text in notes(log)] == ["dear"]


def test_a_model_is_loaded_once_by_each_process_and_its_vectors_are_kept(log: Path) -> None:
    graph = NodeGraph(progress=False, embed=Embedder(HeavyModel(log), batch_size=2))
    graph.add([Document(f"text {i}", id=str(i)) for i in range(20)] + [Document("broken", id="b")])
    graph.create_node_group("line", str.splitlines)
    with ProcessWorkers(2) as workers:
        with pytest.raises(EmbeddingError, match=r"failed on .*ValueError: no such text"):
            graph.build("line", embed="default", workers=workers)
        kept = graph._store.get_values("embedding heavy")
        assert len(kept) > 2
        graph.remove("b")
        graph.build("line", embed=["default"], workers=workers)
    assert len(graph._store.get_values("embedding heavy")) == 21
    assert 1 <= len(notes(log)) <= 2, "loaded more often than there were processes"
    graph.embeddings.vectors([f"text {i}" for i in range(20)], "default")


def test_what_is_wrong_with_the_arguments(workers: ProcessWorkers) -> None:
    graph = NodeGraph(progress=False)
    graph.add("tea")
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"workers must be 1 or more, not {wrong}"):
            graph.build("FineChunk", workers=wrong)
    for other in (True, "8", 2.0):
        with pytest.raises(TypeError, match=r"workers is how many processes, .* not"):
            graph.build("FineChunk", workers=other)  # type: ignore[arg-type]
    with pytest.raises(LookupError, match="no embedding 'default'"):
        graph.build("FineChunk", embed=True)
    lock = threading.Lock()
    embed = Embedder(lambda texts: [[1.0, len(str(lock))]] * len(texts), "locked")
    with NodeGraph(embed=embed, progress=False) as graph:
        graph.add("tea")
        with pytest.raises(LookupError, match="no embedding 'other'; it has 'default'"):
            graph.build("FineChunk", embed=["other"])
        with pytest.raises(
            TypeError, match=r"model 'locked' can't be sent .* Embedder\(model, num"
        ):
            graph.build("FineChunk", embed=True, workers=workers)
    assert as_workers(workers) is workers


def test_a_closed_pool_starts_again(workers: ProcessWorkers) -> None:
    with ProcessWorkers(1) as own:
        call = own.remote(lambda number: (number + 1, os.getpid()), "it", "don't")
        first, process = call(1)
        assert call(2) == (3, process)
        own.close()
        wait_for_end_of(process)
        assert call(first)[0] == 3


_INTERRUPTED = """
import sys
from pathlib import Path
from worker_transforms import Noted
from nodekin.nodegraph import NodeGraph

noted, path, endless = Noted(Path(sys.argv[2])), sys.argv[1], sys.argv[3]

def transform(text):  # of the main program, which has no guard
    noted.note(text)
    while text == endless:
        pass
    return [text]

with NodeGraph(store=path, progress=False) as graph:
    graph.add([f"text {i}" for i in range(20)])
    graph.create_node_group("word", transform, version="1")
    print("building", flush=True)
    graph.build("word", workers=2)
    print(graph.groups["word"].size)
"""


@pytest.mark.slow
@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_in_the_middle_it_leaves_no_process_and_goes_on_later(
    how: signal.Signals, tmp_path: Path, log: Path
) -> None:
    script = tmp_path / "build.py"
    script.write_text(_INTERRUPTED, "utf-8")
    paths = os.pathsep.join(path for path in sys.path if path)

    def start(endless: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(tmp_path / "g.db"), str(log), endless]
        return subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    running = start("text 9")
    deadline = time.monotonic() + PATIENCE
    while not {"text 9", "text 12"} <= {text for _, text in notes(log)}:
        assert time.monotonic() < deadline
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    running.send_signal(how)
    _, errors = running.communicate(timeout=PATIENCE)
    assert errors.count("Traceback") == errors.count("KeyboardInterrupt") == (how == signal.SIGINT)
    for process in {process for process, _ in notes(log)}:
        wait_for_end_of(process)

    output, errors = start("none").communicate(timeout=PATIENCE)
    assert (output.split(), errors) == (["building", "20"], "")
    calls = Counter(text for _, text in notes(log))
    assert len(calls) == 20
    if how == signal.SIGINT:  # but for what was under way, all is there
        assert sum(calls.values()) <= 22
