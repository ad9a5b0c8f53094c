"""Run a command while a language model server is running.

The arguments are ``FOLDER SERVER COMMAND...``. The server is a script that installs itself into the
folder and prints ``OPENAI_BASE_URL=...`` when it is ready. If this environment variable is already
set, or if the script does not exist, the command runs without a server.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path


def main(folder: str, server: str, *command: str) -> int:
    """Run the command, and return its exit status."""
    settings = {"OPENAI_MODEL": "local", "OPENAI_API_KEY": "none", **os.environ}
    if settings.get("OPENAI_BASE_URL"):
        return subprocess.call(command, env=settings)
    if not Path(server).is_file():
        print(f"no server {server}; name one with MODEL_SERVER, or set OPENAI_BASE_URL", flush=True)
        return subprocess.call(command)
    print(f"starting {server} (the first time it installs into {folder})", flush=True)
    log = Path(folder, "server.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as errors:
        started = subprocess.Popen(
            ["bash", server, folder],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        lines = started.stdout or []
        url = next((line for line in lines if line.startswith("OPENAI_BASE_URL=")), "")
        if not url:
            print(f"{server} ended before it served, with {started.wait()}; see {log}", flush=True)
            return 1
        # the thread reads the remaining output
        threading.Thread(target=list, args=[lines], daemon=True).start()
        settings["OPENAI_BASE_URL"] = url.partition("=")[2].strip()
        return subprocess.call(command, env=settings)
    finally:
        os.killpg(started.pid, signal.SIGTERM)
        started.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
