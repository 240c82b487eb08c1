"""A real daemon and a web for tests."""

from __future__ import annotations

import atexit
import functools
import http.server
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@functools.cache
def binary() -> str:
    """Return the path of the daemon: $URLSERVER, or one that Go builds once."""
    if path := os.environ.get("URLSERVER"):
        return path
    if shutil.which("go") is None:
        raise unittest.SkipTest("neither $URLSERVER nor go: no daemon to test with")
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    env = {**os.environ, "CGO_ENABLED": "0"}
    command = ["go", "build", "-o", folder + "/", "./cmd/urlserver"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    return folder + "/urlserver"


class Daemon:
    """A daemon on loopback that obeys no robots.txt delay of its own and asks 127.* only."""

    def __init__(self, settings: str = "", spider: str = "", index: str = "memory") -> None:
        """Make settings; spider has further lines for [spider]."""
        self.folder = tempfile.mkdtemp()
        self.spiders = "127.0.0.1:0"
        settings = settings or "Req_Host_Per_Sec = 100"
        self._settings, self._spider, self._index = settings, spider, index
        self.http = ""
        self.dns = "127.0.0.1:1"
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Start it, again on the same address if it ran before. Returns when it listens."""
        path = Path(self.folder) / "urlserver.toml"
        path.write_text(
            'log.format = "json"\n\n'
            f"{self._settings}\n"
            f'[resolver]\nallow_networks = ["127.0.0.0/8"]\nservers = ["{self.dns}"]\n'
            f'[docindex]\nkind = "{self._index}"\npath = "{self.folder}/index"\n'
            '[http]\nlisten = "127.0.0.1:0"\n'
            f'[spider]\nlisten = "{self.spiders}"\n{self._spider}\n'
        )
        process = subprocess.Popen(
            [binary(), "serve", str(path)], stderr=subprocess.PIPE, text=True
        )
        self._process = process
        assert process.stderr is not None
        lines = []
        self.http = ""
        for line in process.stderr:
            lines.append(line)
            entry = json.loads(line) if line.startswith("{") else {}
            if entry.get("message") == "listening for spiders":
                self.spiders = entry["address"]
            if entry.get("message") == "listening for HTTP":
                self.http = "http://" + entry["address"]
            if self.http and not self.spiders.endswith(":0"):
                break
        else:
            raise RuntimeError("the daemon ended:\n" + "".join(lines))
        self._reader = threading.Thread(target=process.stderr.read, daemon=True)
        self._reader.start()

    def kill(self, how: int = signal.SIGKILL) -> None:
        """End it, and wait until it has."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            assert self._process.stderr is not None
            if self._reader is not None:
                self._reader.join()
            self._process.stderr.close()
            self._process = None

    def close(self) -> None:
        """End it and remove its files."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Web(http.server.ThreadingHTTPServer):
    """A web server on a loopback address; robots.txt allows everything."""

    daemon_threads = True

    def __init__(self, address: str = "127.0.0.1") -> None:
        """Begin to serve in a thread."""
        super().__init__((address, 0), _Page)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}{path}"

    def close(self) -> None:
        """End it."""
        self.shutdown()
        self.server_close()


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = self.path != "/robots.txt"
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass
