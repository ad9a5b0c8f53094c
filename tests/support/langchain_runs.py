from langchain_core.tracers import BaseTracer


class FinishedRuns(BaseTracer):
    """Collects the root runs that have ended."""

    def __init__(self):
        super().__init__()
        self.roots = []

    def _persist_run(self, run):
        self.roots.append(run)


def tree(run):
    """Return the name of a run and the trees of its children, in alphabetical order."""
    return run.name, sorted((tree(child) for child in run.child_runs), key=str)


async def call(runnable, mode, *args, **kwargs):
    """Invoke a runnable: ``"sync"`` or ``"async"``."""
    if mode == "sync":
        return runnable.invoke(*args, **kwargs)
    return await runnable.ainvoke(*args, **kwargs)
