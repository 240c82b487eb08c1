"""README's program crawls the made web of urlserver demo, whose oracle judges it."""

from __future__ import annotations

import re
import subprocess
import sys

from harness import HERE, PROGRAM


def test_readme(tmp_path):
    demo = subprocess.Popen(
        [PROGRAM, "demo", "--spiders", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        places = re.compile(r"spiders at (\S+); the web begins at (\S+)")
        found = next(filter(None, map(places.search, iter(demo.stderr.readline, ""))))
        text = re.search(r"```python\n(.*?)```", (HERE.parent / "README.md").read_text(), re.S)[1]
        program = tmp_path / "pages.py"
        program.write_text(
            text.replace("127.0.0.1:4101", found[1]).replace("http://127.0.0.1:8000/", found[2])
        )
        command = [sys.executable, "-m", "scrapy", "runspider", program, "-o", "pages.jsonl"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        demo.terminate()  # its own seeds wait for a spider without a name
        table, _ = demo.communicate()
    finally:
        demo.kill()
        demo.wait()
    pages = (tmp_path / "pages.jsonl").read_text().splitlines()
    assert len(pages) == len(set(pages)) > 200, table
    assert "politeness broken" not in table, table
