"""The clients with a real daemon."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import tempfile
import time

from urlserver import BlockingClient, Client, Job

from .daemon import Daemon, Web
from .peer import AsyncTest


class WithDaemon(AsyncTest):
    """Tests with a daemon and a web."""

    settings = ""
    spider = ""

    def setUp(self) -> None:
        self.web = Web()
        self.addCleanup(self.web.close)
        self.daemon = Daemon(self.settings, self.spider, index="disk")
        self.addCleanup(self.daemon.close)
        self.daemon.start()


class Crawls(WithDaemon):
    """Whole crawls."""

    async def test_crawl(self) -> None:
        """Each page that was put comes once, and the crawl ends."""
        seen: list[str] = []
        async with Client(self.daemon.spiders) as client:
            urls = [self.web.url(f"/{n}") for n in range(20)]
            self.assertEqual(await client.put_all(urls), ["new"] * 20)
            self.assertEqual(await client.put(urls[0]), "known")
            self.assertEqual(await client.put("nonsense"), "invalid")

            async def visit(job: Job) -> None:
                seen.append(job.url)
                self.assertEqual(job.ip, "127.0.0.1")
                if job.url.endswith("/7"):
                    result = await client.put(self.web.url("/link"), via=job.doc_id)
                    self.assertEqual(result, "new")
                job.done(200, bytes=5, changed=True)

            await client.each(visit, room=8, until_finished=True)
            counts = await client.count()
        self.assertEqual(sorted(seen), sorted([*urls, self.web.url("/link")]))
        self.assertEqual(counts, (0, 0, 0, 21))

    def test_blocking(self) -> None:
        """The blocking client does the same."""
        seen = []
        with BlockingClient(self.daemon.spiders) as client:
            urls = [self.web.url(f"/{n}") for n in range(5)]
            self.assertEqual(client.put_all(urls), ["new"] * 5)
            for job in client.jobs(room=2, until_finished=True):
                with job:
                    seen.append(job.url)
            self.assertEqual(client.count().completed, 5)
        self.assertEqual(sorted(seen), sorted(urls))

    async def test_payload(self) -> None:
        """A page is put twice, under two names, and each comes with its own bytes."""
        url, largest = self.web.url("/form"), bytes(range(256)) * 32
        async with Client(self.daemon.spiders, payload=True) as client:
            for unique, payload in [("a", b"one"), ("b", largest)]:
                put = client.put(url, unique=unique, payload=payload)
                self.assertEqual(await put, "new")
            self.assertEqual(await client.put(url, unique="a"), "known")
            got = set()
            async for job in client.jobs(until_finished=True):
                async with job:
                    got.add((job.url, job.payload))
        self.assertEqual(got, {(url, b"one"), (url, largest)})

    async def test_kill(self) -> None:
        """The daemon is killed in the middle and started again: each page ends exactly once."""
        urls = [self.web.url(f"/{n}") for n in range(100)]
        seen: list[str] = []
        half = asyncio.Event()

        async def visit(job: Job) -> None:
            seen.append(job.url)
            if len(seen) == 50:
                half.set()
            job.done(200)

        async def restart() -> None:
            await half.wait()
            await asyncio.to_thread(self.daemon.kill)
            await asyncio.to_thread(self.daemon.start)

        async with Client(self.daemon.spiders) as client:
            self.assertEqual(await client.put_all(urls), ["new"] * 100)
            crawl = client.each(visit, room=8, until_finished=True)
            await asyncio.gather(crawl, restart())
            self.assertEqual(await client.count(), (0, 0, 0, 100))
        self.assertEqual(sorted(set(seen)), sorted(urls))


class Slow(WithDaemon):
    """A daemon that soon takes a silent spider for dead."""

    settings = "Timeout_Spider_Status = 3"

    async def test_slow_body(self) -> None:
        """A body of more than twice the status timeout ends its job, as WORKING is sent."""
        async with Client(self.daemon.spiders, status_timeout=3) as client:
            await client.put(self.web.url("/slow"))
            async for job in client.jobs():
                async with job:
                    await asyncio.sleep(7)
                    if job.done(200):  # it may be lost where the machine is very busy
                        break
            async for _ in client.jobs(until_finished=True):
                self.fail("a document came that has ended")
            self.assertEqual(await client.count(), (0, 0, 0, 1))

    def test_slow_blocking_body(self) -> None:
        """The same where the body blocks its thread."""
        with BlockingClient(self.daemon.spiders, status_timeout=3) as client:
            client.put(self.web.url("/slow"))
            for job in client.jobs():
                with job:
                    time.sleep(7)
                    if job.done(200):
                        break
            for _ in client.jobs(until_finished=True):
                self.fail("a document came that has ended")
            self.assertEqual(client.count(), (0, 0, 0, 1))


class Secure(AsyncTest):
    """A daemon that wants TLS and a token."""

    def certificate(self) -> tuple[str, str]:
        """Return the files of a new certificate and its key."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        cert, key = f"{folder}/cert.pem", f"{folder}/key.pem"
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=daemon"
        files = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key]
        subprocess.run([*command.split(), *files], check=True, capture_output=True)
        return cert, key

    async def test_tls_and_token(self) -> None:
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed: TLS is not tried")
        cert, key = self.certificate()
        spider = f'token = "secret"\ntls_cert = "{cert}"\ntls_key = "{key}"'
        daemon = Daemon(spider=spider)
        self.addCleanup(daemon.close)
        await asyncio.to_thread(daemon.start)
        context = ssl.create_default_context(cafile=cert)
        async with Client(daemon.spiders, token="secret", tls=context) as client:
            self.assertEqual(await client.put("http://127.0.0.1/"), "new")
            self.assertEqual((await client.count()).completed, 0)
