"""The stream between client and daemon, cut at each byte in both directions."""

from __future__ import annotations

import asyncio

from urlserver import Client, Job

from .daemon import Daemon, Web
from .peer import AsyncTest, Reader, Writer

LONGEST = 220
"""More bytes than client or daemon send in a conversation below."""


FAST = "Req_Host_Per_Sec = 1000\nReq_Host_Concurrent = 1000\nQueue_Len = 1000"


class Proxy:
    """Passes one client's connections on, and cuts the first one after so many bytes.

    It connects from an address of its own, because the daemon slows spiders of an address down
    whose connections end before they have said anything.
    """

    def __init__(self, to: str, source: str, cut: int, upwards: bool) -> None:
        """Make a proxy; upwards: the bytes from client to daemon count."""
        self._host, port = to.split(":")
        self._port, self._source = int(port), source
        self._left, self._upwards = cut, upwards
        self._first = True
        self.was_cut = False

    async def start(self) -> str:
        """Listen, and return the address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    def close(self) -> None:
        """End it; connections end with the client's."""
        self._server.close()

    async def _accept(self, reader: Reader, writer: Writer) -> None:
        cuts, self._first = self._first, False
        up = await asyncio.open_connection(self._host, self._port, local_addr=(self._source, 0))
        ends = (writer, up[1])
        await asyncio.gather(
            self._pass(reader, up[1], cuts and self._upwards, ends),
            self._pass(up[0], writer, cuts and not self._upwards, ends),
        )

    async def _pass(
        self, reader: Reader, writer: Writer, cuts: bool, ends: tuple[Writer, Writer]
    ) -> None:
        try:
            while data := await reader.read(4096):
                if cuts and len(data) >= self._left:
                    self.was_cut = True
                    writer.write(data[: self._left])
                    await writer.drain()
                    break
                self._left -= len(data) if cuts else 0
                writer.write(data)
        except ConnectionError:
            pass
        for end in ends:
            end.close()


class CutTest(AsyncTest):
    """Hundreds of clients of one daemon, each with a document of its own and a cut of its own."""

    async def asyncSetUp(self) -> None:
        self.web = Web()
        self.addCleanup(self.web.close)
        self.daemon = Daemon(
            "Req_Host_Per_Sec = 1000\nReq_Host_Concurrent = 1000\nQueue_Len = 1000"
        )
        self.addCleanup(self.daemon.close)
        await asyncio.to_thread(self.daemon.start)

    async def crawl(self, name: str, source: str, cut: int, upwards: bool) -> bool:
        """Crawl one page behind a cut, and return whether the cut was reached."""
        proxy = Proxy(self.daemon.spiders, source, cut, upwards)

        async def visit(job: Job) -> None:  # another client's document, where that is away now
            await asyncio.sleep(0)
            job.done(200, bytes=5)

        async with Client(await proxy.start(), spiderid=name) as client:
            url = self.web.url("/" + name)
            result = await client.put(url, crawl=name, metadata={"spiderid": name})
            self.assertIn(result, ("new", "known"))
            await client.each(visit, room=2, until_finished=True, crawl=name)
            self.assertEqual(await client.count(name), (0, 0, 0, 1), name)
        proxy.close()
        return proxy.was_cut

    async def test_each_byte(self) -> None:
        """Wherever the stream is cut, the document ends in exactly one outcome."""
        for upwards in (True, False):
            done = await asyncio.gather(
                *[
                    self.crawl(f"{n}-{upwards:d}", f"127.1.{upwards:d}.{n + 1}", n, upwards)
                    for n in range(LONGEST)
                ]
            )
            self.assertTrue(all(done[:100]))
            self.assertFalse(done[-1], "LONGEST is too short")
