"""README's program crawls the made web of urlserver demo, whose oracle judges it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import urlserver

from .daemon import binary

README = Path(__file__).resolve().parents[1] / "README.md"


class ReadmeTest(unittest.TestCase):
    """The lines that people copy."""

    def test_program(self) -> None:
        """It fetches each page once, at the pace that the daemon has set, and ends."""
        block = re.search(r"```python\n(.*?)```", README.read_text(), re.S)
        assert block is not None
        demo = subprocess.Popen(
            [binary(), "demo", "--spiders", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(demo.wait)
        self.addCleanup(demo.kill)
        assert demo.stderr is not None
        for line in demo.stderr:
            if address := re.search(r"waiting for spiders at (\S+)", line):
                break
        else:
            self.fail("the demo ended")
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "crawl.py"
            program.write_text(block[1].replace("127.0.0.1:4101", address[1]))
            source = str(Path(urlserver.__file__).parents[1])
            env = {**os.environ, "PYTHONPATH": source}
            spider = subprocess.Popen([sys.executable, str(program)], env=env)
            self.addCleanup(spider.kill)
            table, log = demo.communicate(timeout=900)
            self.assertEqual(demo.returncode, 0, table + log)
            self.assertIn("politeness was kept", table)
            self.assertEqual(spider.wait(timeout=60), 0)
