from langchain_core.tracers import BaseTracer


class FinishedRuns(BaseTracer):
    """A tracer that collects the root runs that have ended."""

    def __init__(self):
        super().__init__()
        self.roots = []

    def _persist_run(self, run):
        self.roots.append(run)


def tree(run):
    """Return the name of a run and the trees of its child runs, in alphabetical order."""
    return run.name, sorted((tree(child) for child in run.child_runs), key=str)


async def call(runnable, way, given, config=None, **kwargs):
    """Call a runnable in the given way, and return the result. The pieces of a stream are added up.

    ``"sync"`` is short for ``"invoke"``, and ``"async"`` for ``"ainvoke"``.
    """
    way = {"sync": "invoke", "async": "ainvoke"}.get(way, way)
    if way.endswith("stream"):
        first, *others = await pieces_of(runnable, way, given, config, **kwargs)
        return sum(others, first) if not isinstance(first, str) else first + "".join(others)
    is_batch = way.endswith("batch")
    made = getattr(runnable, way)([given] if is_batch else given, config, **kwargs)
    result = await made if way.startswith("a") else made
    return result[0] if is_batch else result


async def pieces_of(runnable, way, given, config=None, **kwargs):
    """Return the pieces of a stream that is created with ``"stream"`` or ``"astream"``."""
    made = getattr(runnable, way)(given, config, **kwargs)
    return list(made) if way == "stream" else [piece async for piece in made]
