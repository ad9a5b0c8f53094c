"""What all tests share."""

import asyncio
import gc
import itertools
import os
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.postgres_server import RunningServer, running_server
from support.stress import amount

from nodekin.nodegraph.lazy_names import STORES, plugins

# No deadlines: tests must pass on a busy machine. Local runs look for new counterexamples; CI
# repeats fixed examples. ``make stress`` tries three times
# as many.
settings.register_profile(
    "nodekin",
    deadline=None,
    max_examples=amount(35, 100),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("nodekin")

CHECKOUT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data",
        type=Path,
        default=os.environ.get("NODEKIN_DATA") or CHECKOUT / "data",
        help="folder of the public data sets; default: $NODEKIN_DATA; missing data skips tests",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during test collection, since imported modules stay in memory."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    # Otherwise LlamaIndex's sync methods and aiosqlite would create an event loop and leak it.
    asyncio.set_event_loop(None)
    return result


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Make SIGINT interrupt this process and its children; background jobs ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def data(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the public data sets."""
    folder: Path = request.config.getoption("--data")
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder}: set NODEKIN_DATA or pass --data=PATH")
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[RunningServer]:
    """Yield a PostgreSQL server that all tests of this process share."""
    with running_server() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "postgresql", "pgvector"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], dict[str, Any]]:
    """Return a function that returns the arguments of ``NodeGraph`` for a new, empty graph."""
    if request.param == "memory":
        return dict
    if request.param == "sqlite":
        numbers = itertools.count()
        return lambda: {"store": tmp_path / f"engine{next(numbers)}.db"}
    if "postgresql" not in plugins(STORES):
        pytest.skip("no installed package has postgresql")
    server: RunningServer = request.getfixturevalue("postgres_server")
    vectors = "memory" if request.param == "postgresql" else "pgvector"
    return lambda: {"store": f"{server.address()}&vectors={vectors}"}


@pytest.fixture(scope="session")
def language_model() -> Iterator[Any]:
    """Return the real language model that the environment names (``make test-models``)."""
    for name in ("OPENAI_BASE_URL", "OPENAI_MODEL"):
        if not os.environ.get(name):
            pytest.skip(f"a real model needs {name} (and OPENAI_API_KEY) in the environment")
    from openai import OpenAI

    from nodekin.adapters.openai_chat import OpenAIChat

    with OpenAI() as client:
        model = os.environ["OPENAI_MODEL"]
        yield OpenAIChat(model, client=client, max_tokens=600, timeout=300)
