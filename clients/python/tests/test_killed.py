"""Several processes of Crawlee at one queue, of which some are killed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path

import urlserver

from .daemon import ROOT, Daemon

HOSTS, PAGES = 40, 20
KILLS = 10
ROOM = 8  # requests of a process at one time
SETTINGS = "Req_Host_Per_Sec = 3\nrobots.enabled = false"


@unittest.skipIf(
    any(importlib.util.find_spec(name) is None for name in ("crawlee", "parsel")),
    "crawlee[parsel] is not installed",
)
class KilledTest(unittest.TestCase):
    """kill -9 in the middle of a crawl."""

    def setUp(self) -> None:
        self.daemon = Daemon(SETTINGS, index="disk")
        self.addCleanup(self.daemon.close)
        self.daemon.start()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        web = ROOT / "clients" / "scrapy" / "tests" / "web.py"
        process = subprocess.Popen(
            [sys.executable, str(web), str(HOSTS), str(PAGES)], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        self.port = int(process.stdout.readline())
        self.begun = 0

    def get(self, path: str) -> str:
        """Ask the web what it was asked."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return str(answer.read().decode())

    def begin(self) -> tuple[str, subprocess.Popen[bytes]]:
        """Start a process, with storages of its own, as on a machine of its own."""
        self.begun += 1
        name = f"process-{self.begun}"
        seeds = [f"http://127.1.0.{n + 1}:{self.port}/0" for n in range(HOSTS)]
        env = {
            **os.environ,
            "PYTHONPATH": str(Path(urlserver.__file__).parents[1]),
            "CRAWLEE_STORAGE_DIR": str(self.folder / name),
        }
        program = Path(__file__).parent / "crawlee" / "crawl.py"
        command = [sys.executable, str(program), self.daemon.spiders, self.daemon.http, name]
        with (self.folder / "record").open("a") as record, (self.folder / "log").open("a") as log:
            process = subprocess.Popen([*command, *seeds], env=env, stdout=record, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return name, process

    def test_killed(self) -> None:
        """Of three processes, one is killed and another one started, ten times.

        Each page comes, and comes again only if it was open at a process that was killed.
        """
        killed: list[str] = []
        running = [self.begin() for _ in range(3)]
        while len(killed) < KILLS:
            name, process = running.pop(0)
            while json.loads(self.get("/counts")).get(name, 0) < 2 * ROOM:
                self.assertIsNone(process.poll(), "the crawl has ended before all kills")
                time.sleep(0.02)
            process.kill()
            process.wait()
            killed.append(name)
            running.append(self.begin())
        for _, process in running:
            self.assertEqual(process.wait(timeout=600), 0, (self.folder / "log").read_text())

        asked = defaultdict(list)
        for line in self.get("/log").splitlines():
            address, path, name, _ = json.loads(line)
            asked[f"http://{address}:{self.port}{path}"].append(name)
        self.assertEqual(len(asked), HOSTS * PAGES)
        self.assertEqual(set((self.folder / "record").read_text().split()), set(asked))
        again = Counter(name for names in asked.values() for name in names[:-1])
        print("asked again:", dict(again), file=sys.stderr)
        self.assertLessEqual(set(again), set(killed))
        self.assertLessEqual(max(again.values(), default=0), ROOM)
