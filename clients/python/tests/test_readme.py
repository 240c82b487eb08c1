"""Programs of the documents crawl the made web of urlserver demo, whose oracle judges them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import urlserver

from .daemon import ROOT, binary


class ReadmeTest(unittest.TestCase):
    """The lines that people copy."""

    def setUp(self) -> None:
        self.demo = subprocess.Popen(
            [binary(), "demo", "--spiders", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.demo.wait)
        self.addCleanup(self.demo.kill)
        assert self.demo.stderr is not None
        for line in self.demo.stderr:
            if found := re.search(r"spiders at (\S+); the web begins at (\S+)", line):
                self.address, self.seed = found[1], found[2]
                return
        self.fail("the demo ended")

    def start(self, document: Path) -> subprocess.Popen[bytes]:
        """Start the first program of a document on the demo's web."""
        block = re.search(r"```python[^\n]*\n(.*?)```", document.read_text(), re.S)
        assert block is not None
        text = block[1].replace("127.0.0.1:4101", self.address)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        program = Path(folder.name) / "crawl.py"
        program.write_text(text.replace("http://127.0.0.1:8000/", self.seed))
        source = str(Path(urlserver.__file__).parents[1])
        env = {**os.environ, "PYTHONPATH": source}
        spider = subprocess.Popen([sys.executable, str(program)], env=env, cwd=folder.name)
        self.addCleanup(spider.wait)
        self.addCleanup(spider.kill)
        self.folder = Path(folder.name)
        return spider

    def test_asyncio(self) -> None:
        """README's program fetches each page once, at the daemon's pace, and ends."""
        spider = self.start(ROOT / "clients" / "python" / "README.md")
        table, log = self.demo.communicate(timeout=900)
        self.assertEqual(self.demo.returncode, 0, table + log)
        self.assertIn("politeness was kept; no page was fetched more than once", table)
        self.assertEqual(spider.wait(timeout=60), 0)

    def test_crawlee(self) -> None:
        """The recipe's program crawls what it finds, at the daemon's pace, and ends."""
        if any(importlib.util.find_spec(name) is None for name in ("crawlee", "parsel")):
            self.skipTest("crawlee[parsel] is not installed")
        spider = self.start(ROOT / "docs" / "recipes" / "crawlee.md")
        self.assertEqual(spider.wait(timeout=900), 0)
        pages = list((self.folder / "storage" / "datasets" / "default").glob("0*.json"))
        self.assertGreater(len(pages), 200)
        self.demo.terminate()  # its own seeds wait for a spider without a name
        table, _ = self.demo.communicate(timeout=60)
        self.assertNotIn("politeness broken", table)  # retries fetch some pages again
        self.assertRegex(table, r"; (2[5-9]|3)[0-9]+ pages and")
