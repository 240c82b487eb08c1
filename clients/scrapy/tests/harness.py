"""What the tests stand on: a daemon, and a name server that knows all names."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

PROGRAM = os.environ.get("URLSERVER", "urlserver")

SETTINGS = """
Req_Host_Per_Sec = {per_sec}
Req_Host_Concurrent = {concurrent}
spider.listen = "127.0.0.1:0"
http.listen = ""
log.format = "json"
docindex.kind = "{kind}"
docindex.path = "{folder}/db"
robots.enabled = false
resolver.servers = ["{names}"]
resolver.allow_networks = ["127.0.0.0/8"]
"""


class Names:
    """A name server: all names have the address 127.0.0.1, but those that end with "invalid"."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            question, peer = self._socket.recvfrom(512)
            self._socket.sendto(self._answer(question), peer)

    def _answer(self, question: bytes) -> bytes:
        end = question.index(b"\0", 12) + 5
        name, kind = question[12 : end - 4].lower(), question[end - 4 : end - 2]
        known = not name.endswith(b"\x07invalid\0")
        answers = int(known and kind == b"\0\1")
        counts = question[4:6] + bytes([0, answers]) + b"\0" * 4
        address = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" * answers
        status = b"\x81\x80" if known else b"\x81\x83"
        return question[:2] + status + counts + question[12:end] + address


class Daemon:
    """A running daemon. Its address is spider.listen's."""

    def __init__(self, per_sec: float = 1000, concurrent: int = 64, kind: str = "memory"):
        self._folder = tempfile.TemporaryDirectory(prefix="urlserver")
        self.log = Path(self._folder.name, "log")
        settings = Path(self._folder.name, "urlserver.toml")
        settings.write_text(
            SETTINGS.format(
                per_sec=per_sec,
                concurrent=concurrent,
                kind=kind,
                folder=self._folder.name,
                names=Names().address,
            )
        )
        self._process = subprocess.Popen(
            [PROGRAM, "serve", str(settings)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        self.address = self._listening()
        threading.Thread(target=self._keep_log, daemon=True).start()

    def _listening(self) -> str:
        for line in self._process.stderr:
            entry = json.loads(line) if line.startswith(b"{") else {}
            if "spider" in entry.get("message", "") and "address" in entry:
                return entry["address"]
        raise RuntimeError("the daemon does not listen")

    def _keep_log(self) -> None:
        with self.log.open("ab") as log:
            for line in self._process.stderr:
                log.write(line)
                log.flush()

    def cpu(self) -> float:
        """Returns the seconds of processor time that it has taken."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


HERE = Path(__file__).parent


class Web:
    """web.py as a process."""

    def __init__(self, hosts: int, pages: int):
        self._process = subprocess.Popen(
            [sys.executable, HERE / "web.py", str(hosts), str(pages)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hosts, self.pages, self.port = hosts, pages, int(self._process.stdout.readline())

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.read().decode()

    def log(self) -> list[tuple[str, str, str, float]]:
        """Returns address, path, User-Agent and time of each request so far."""
        return [tuple(json.loads(line)) for line in self.get("/log").splitlines()]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Crawler(subprocess.Popen):
    """broad.py as a process, on the web."""

    def __init__(self, web: Web, *settings: str):
        command = [sys.executable, HERE / "broad.py", str(web.port), str(web.hosts), *settings]
        super().__init__(command, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self.kill()
        self.wait()
        self.stdout.close()
