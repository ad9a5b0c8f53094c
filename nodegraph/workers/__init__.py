"""Call functions in other processes: of this machine, or wherever a pool starts them."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .process_workers import ProcessWorkers, as_workers
    from .remote_calls import CallServer, RemoteTraceback, converse, is_sending, to_bytes
    from .remote_workers import RemoteWorker, RemoteWorkers, WorkerEndedError
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".remote_calls": "CallServer RemoteTraceback converse is_sending to_bytes",
            ".process_workers": "ProcessWorkers as_workers",
            ".remote_workers": "RemoteWorker WorkerEndedError RemoteWorkers",
        },
    )

__all__ = [
    "CallServer",
    "ProcessWorkers",
    "RemoteTraceback",
    "RemoteWorker",
    "RemoteWorkers",
    "WorkerEndedError",
    "as_workers",
    "converse",
    "is_sending",
    "to_bytes",
]
