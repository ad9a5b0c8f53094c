"""Whatever runs beside whatever else, nothing waits for ever: calls, forks, interrupts, writers."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from postgres_server import RunningServer

from nodekin.nodegraph import NodeGraph, locking
from nodekin.nodegraph.locking import Lock

PATIENCE = 540.0
"""Seconds after which something that should happen is taken to hang."""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

SET_UP = """
import faulthandler, itertools, os, random, signal, sys, threading, time, traceback, warnings
from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.retrievers import Retriever

warnings.simplefilter("ignore")  # of forks beside threads, which is what is tried
store = sys.argv[1] or None

def embed(texts):
    return [[float(len(text)), float(text.count("e")) + 1] for text in texts]

def documents(turn=0):
    return [Document(f"tea {n} of turn {turn}\\nleaf number {n}", id=f"d{n}") for n in range(50)]

def open_graph(embed=embed):
    graph = NodeGraph(store=store, embed=Embedder(embed, "lengths"), progress=False)
    graph.create_node_group("line", str.splitlines, replace=True)
    return graph

def in_child(work):
    # Run work in a forked process. It must succeed within two minutes.
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(120)
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, status
"""


def run(script: str, store: str) -> str:
    """Run a script in a process of its own; return what it prints."""
    command = [sys.executable, "-c", SET_UP + script, store]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr[-4000:]
    return ran.stdout.strip()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "" if request.param == "memory" else str(tmp_path / "graph.db")


PAIRS = """
faulthandler.dump_traceback_later(500, exit=True)
graph = open_graph()
graph.add(documents())
words, vectors = (Retriever(graph, "line", name) for name in ("bm25", "cosine"))
turns = itertools.count(1)
gone = (LookupError, StoreError)  # what the other thread has removed, or closed

def change(start, stop):
    graph.add(documents(next(turns))[start:stop])

def remove():
    graph.remove([f"d{random.randrange(25, 50)}"])
    change(25, 50)

def kin():
    node = random.choice(graph.nodes("line"))
    kin = graph.find("ROOT")(node), node.parent, graph.neighbours(node), graph.place(node)
    return kin, graph.children(node.parent), graph.pages(node)

def link():
    graph.link("d0", "d1")
    graph.linked("d0"), graph.links("d0")
    graph.unlink("d0", "d1")

def declare():
    name = f"word {next(turns) % 3}"
    graph.create_node_group(name, str.split, replace=True, version=str(next(turns)))
    graph.nodes(name)

def fork():
    in_child(lambda: (words("tea"), vectors("leaf"), graph.add(documents(next(turns))[:1])))

CALLS = {
    "add": lambda: change(0, 25),
    "remove": remove,
    "refresh": lambda: (graph.update(documents(next(turns))[:2]), graph.refresh()),
    "build": lambda: graph.build("line", embed=True),
    "nodes": lambda: graph.nodes("line"),
    "words": lambda: words("tea leaf"),
    "vectors": lambda: vectors(f"tea {random.random()}"),
    "kin": kin,
    "link": link,
    "declare": declare,
    "embedding": lambda: graph.embedding(graph.node("d0")),
    "groups": lambda: (graph.groups, graph.failures, graph.sources, graph.read_report),
    "compact": lambda: graph.compact(),
    "close": lambda: graph.close(),
    "fork": fork,
}
done = threading.Event()

def write():
    while not done.is_set():
        change(0, 5)
        time.sleep(0.005)

def repeat(name):
    for _ in range(2):
        try:
            CALLS[name]()
        except gone:
            pass
        except BaseException as error:
            errors.append(f"{name}: {error!r}")

errors = []
for name in CALLS:  # a child waits for modules that another thread was importing, in any library
    repeat(name)
writer = threading.Thread(target=write, daemon=True)
writer.start()
pairs = list(itertools.combinations_with_replacement(CALLS, 2))
for pair in pairs:
    threads = [threading.Thread(target=repeat, args=[name], daemon=True) for name in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback(all_threads=True)
        sys.exit(f"{pair} wait for each other")
done.set()
writer.join(120)
assert not errors, errors[:3]
assert len(graph.nodes("ROOT")) == 50 and words("tea leaf")
print(len(pairs))
"""


@needs_fork
@pytest.mark.slow
def test_each_public_call_ends_beside_each_other_one(store: str) -> None:
    assert run(PAIRS, store) == "120"


def test_the_pairs_have_each_public_call() -> None:
    names = {name for name in dir(NodeGraph) if not name.startswith("_")}
    assert names - set(re.findall(r"graph\.(\w+)", PAIRS)) == set()


FORKS = """
faulthandler.dump_traceback_later(500, exit=True)
embedding, updating, go_on = threading.Event(), threading.Event(), threading.Event()

def slow(texts):
    # Wait in the model, in this process alone.
    if os.getpid() == parent and threading.current_thread() is not threading.main_thread():
        embedding.set()
        go_on.wait(120)
    return embed(texts)

parent = os.getpid()
graph = open_graph(slow)
graph.add(documents())
graph.build("line")
words, vectors = (Retriever(graph, "line", name) for name in ("bm25", "cosine"))
WORK = {
    "embeds passages": lambda: graph.build("line", embed=True),
    "embeds a query": lambda: vectors("leaf"),
    "updates an index": lambda: words("tea"),
    "opens an index": lambda: graph.reader.shared("slow", lambda: slow([])),
}
for what, work in WORK.items():
    embedding.clear(), go_on.clear()
    if what == "updates an index":
        words("tea")
        index = next(i for i in graph.reader._shared.values() if type(i).__name__ == "TextIndex")
        finish = index.finish
        index.finish = lambda: (slow([]), finish())  # half made: added, and not finished
        graph.add(documents(1)[:5])
        graph.build("line")
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert embedding.wait(120), what

    def search():
        assert len(words("leaf", top_k=100)) == 50
        assert [r.node.text for r in words("turn 1", top_k=1)] or what != "updates an index"
        assert len(vectors("leaf", top_k=200)) == 100
        graph.reader.shared("slow", lambda: None)
        graph.add(Document("of the child", id="d49"))
        assert "child" in words("child")[0].node.text

    in_child(search)
    go_on.set()
    thread.join(120)
    assert not thread.is_alive()
    graph.add(documents()[49:])  # instead of the child's, where both have one file
print(len(WORK))
"""


@pytest.mark.slow  # a fork may wait ten seconds for a connection of SQLite
@needs_fork
def test_a_process_forked_while_a_thread_embeds_or_opens_an_index_goes_on(store: str) -> None:
    assert run(FORKS, store) == "4"


IMPORTS = """
import __main__, tempfile
from pathlib import Path
from nodekin.nodegraph.locking import is_importing
from nodekin.retrievers import SubQuestionRetriever

faulthandler.dump_traceback_later(500, exit=True)
is_loading, go_on = threading.Event(), threading.Event()
folder = Path(tempfile.mkdtemp())
(folder / "json_repair.py").write_text(
    "import __main__\\n"
    "__main__.is_loading.set()\\n"
    "own = __main__.is_importing()\\n"
    "__main__.go_on.wait(120)\\n"
    "repair_json = lambda *args, **options: {'questions': ['tea']}\\n"
)
sys.path.insert(0, str(folder))
graph = open_graph()
graph.add(documents())
retriever = SubQuestionRetriever(Retriever(graph, "line"), lambda prompt: '{"questions": ["te')
thread = threading.Thread(target=retriever, args=["Which tea is which?"], daemon=True)
thread.start()
assert is_loading.wait(120)
assert is_importing() and not sys.modules["json_repair"].own
threading.Timer(0.2, go_on.set).start()  # while the fork waits for it
in_child(lambda: retriever("Which tea is whose?"))
thread.join(120)
print(is_importing())
"""


@needs_fork
def test_a_process_forked_while_a_thread_imports_what_we_need_goes_on(store: str) -> None:
    assert run(IMPORTS, store) == "False"


INTERRUPTS = """
faulthandler.dump_traceback_later(500, exit=True)
graph, rng = open_graph(), random.Random(7)
graph.add(documents())
words, vectors = (Retriever(graph, "line", name) for name in ("bm25", "cosine"))
words("tea"), vectors("tea")  # imports what they need
signal.signal(signal.SIGALRM, signal.default_int_handler)

def work(turn):
    while True:
        graph.add(documents(turn)[:3])
        words("tea leaf")
        vectors(f"leaf {rng.random()}")
        graph.reader.shared(turn, lambda: turn)

interrupts = 0
while interrupts < 2_000:
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 1e-2), 0.5)
        try:
            work(interrupts)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupts += 1

def after():
    graph.add(documents())
    assert len(words("leaf", top_k=100)) == 50
    assert len(vectors("leaf", top_k=200)) == 100
    ended.append(True)

ended = []
thread = threading.Thread(target=after, daemon=True)  # another one, for which locks must be free
thread.start()
thread.join(120)
assert ended, "a lock is held for good"
graph.close()
print(interrupts)
"""


OTHER_STORE = """
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
with NodeGraph(store=PostgresStore(store, timeout=10)) as other:
    other.add(documents(1))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_two_thousand_interrupts_leave_no_lock_held(store: str) -> None:
    assert run(INTERRUPTS, store) == "2000"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_interrupts_leave_no_lock_of_a_server_held(postgres_server: RunningServer) -> None:
    address = postgres_server.address()
    script = INTERRUPTS.replace("2_000", "300").replace("graph.close()", OTHER_STORE)
    assert run(script, address) == "300"


STARVED = """
graph = open_graph()
done = threading.Event()

def write(number):
    turn = 0
    while not done.is_set():
        turn += 1
        graph.add(Document(f"tea {turn}", id=f"w{number}"))

threads = [threading.Thread(target=write, args=[n], daemon=True) for n in range(3)]
for thread in threads:
    thread.start()
import subprocess
other = '''
import sys
from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.sqlite.sqlite_store import SQLiteStore
graph = NodeGraph(store=SQLiteStore(sys.argv[1], timeout=30), progress=False)
for turn in range(5):
    graph.add(Document(f"cup {turn}", id="other"))
'''
ran = subprocess.run([sys.executable, "-c", other, store], capture_output=True, text=True)
done.set()
for thread in threads:
    thread.join(60)
print(ran.returncode, ran.stderr[-500:])
"""


def test_threads_that_write_without_pause_let_another_process_write(tmp_path: Path) -> None:
    assert run(STARVED, str(tmp_path / "graph.db")) == "0"


def test_a_wait_has_a_limit_and_says_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "_LOOK_AGAIN", 0.001)
    lock = Lock("another thread that embeds")
    errors: list[str] = []

    def wait() -> None:
        with lock.held(wait=False) as free:
            assert not free
        try:
            with lock.held(limit=0.01):
                pass
        except TimeoutError as error:
            errors.append(str(error))

    with lock.held(), lock.held():  # the same thread may
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(PATIENCE)
    assert len(errors) == 1
    assert "for another thread that embeds" in errors[0]
    with lock.held(limit=0.01) as free:
        assert free
