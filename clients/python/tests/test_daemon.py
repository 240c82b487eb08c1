"""The clients with a real daemon."""

from __future__ import annotations

from urlserver import BlockingClient, Client, Job

from .daemon import Daemon, Web
from .peer import AsyncTest


class WithDaemon(AsyncTest):
    """Tests with a daemon and a web."""

    spider = ""

    def setUp(self) -> None:
        self.web = Web()
        self.addCleanup(self.web.close)
        self.daemon = Daemon(spider=self.spider, index="disk")
        self.addCleanup(self.daemon.close)
        self.daemon.start()

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
