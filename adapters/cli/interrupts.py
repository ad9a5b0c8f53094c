"""Handle interrupts (Ctrl-C) before and after a command runs."""

from __future__ import annotations

import os
import signal
import threading

_INTERRUPTED = 130  # equal to ExitStatus.INTERRUPTED, whose module has not been imported yet


def end_on_interrupt() -> None:
    """Make an interrupt end the process immediately.

    While modules are being imported, a ``KeyboardInterrupt`` may be lost or turned into an
    ``ImportError``. If interrupts are ignored, they remain ignored.
    """
    _replace(signal.default_int_handler, _end)


def raise_on_interrupt() -> None:
    """Make interrupts raise ``KeyboardInterrupt`` again, so that commands can close their files."""
    _replace(_end, signal.default_int_handler)


def _replace(current: object, handler: signal._HANDLER) -> None:
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) is current:
        signal.signal(signal.SIGINT, handler)


def _end(*_: object) -> None:
    os.write(2, b"nodekin: interrupted\n")
    os._exit(_INTERRUPTED)
