"""A file is closed while other threads read it: nothing crashes, and nothing is lost."""

import subprocess
import sys
import threading
from pathlib import Path

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.sqlite import SQLiteStore

PATIENCE = 300.0

READ_AND_CLOSE = """
import sys, threading
from nodekin.nodegraph.sqlite import SQLiteStore

store = SQLiteStore(sys.argv[1])
store.put_values("kind", {str(n): b"x" * 100 for n in range(200)})
sys.setswitchinterval(1e-5)
read = []

def run():
    for turn in range(60):
        read.append(len(store.get_values("kind")))
        if turn % 3 == 0:
            store.close()

threads = [threading.Thread(target=run) for _ in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
store.close()
print(len(read), set(read))
"""


def test_threads_read_while_others_close(tmp_path: Path) -> None:
    # In a process of its own: SQLite crashes where a connection in use is closed.
    command = [sys.executable, "-W", "error", "-c", READ_AND_CLOSE, str(tmp_path / "graph")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "360 {200}\n"


def test_a_state_that_is_read_stays_open_and_a_file_that_is_closed_opens_again(
    tmp_path: Path,
) -> None:
    graph = NodeGraph(store=SQLiteStore(tmp_path / "graph"), progress=False)
    graph.add([Document("tea", id="tea"), Document("cup", id="cup")])
    with graph.reading():
        nodes = iter(graph.nodes("ROOT"))
        first = next(nodes)
        closing = threading.Thread(target=graph.close)
        closing.start()
        closing.join(PATIENCE)
        assert not closing.is_alive()
        assert [first.id, *(node.id for node in nodes)] == ["tea", "cup"]
        assert [node.text for node in graph.nodes("ROOT")] == ["tea", "cup"]
    assert [node.text for node in graph.nodes("ROOT")] == ["tea", "cup"]
    graph.close()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("graph-")] == []
