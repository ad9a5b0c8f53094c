"""Interrupts (Ctrl-C) before and after a command."""

from __future__ import annotations

import os
import signal
import threading

_INTERRUPTED = 130  # ExitStatus.INTERRUPTED, whose module is not loaded yet


def end_on_interrupt() -> None:
    """End the process immediately on an interrupt.

    While modules load, a ``KeyboardInterrupt`` may be lost, or become an ``ImportError``. An
    ignored interrupt stays ignored.
    """
    _replace(signal.default_int_handler, _end)


def raise_on_interrupt() -> None:
    """Raise ``KeyboardInterrupt`` on an interrupt again, for commands with files to close."""
    _replace(_end, signal.default_int_handler)


def _replace(current: object, handler: signal._HANDLER) -> None:
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is current:
        signal.signal(signal.SIGINT, handler)


def _end(*_: object) -> None:
    os.write(2, b"nodekin: interrupted\n")
    os._exit(_INTERRUPTED)
