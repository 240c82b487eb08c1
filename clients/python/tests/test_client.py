"""The asyncio client with a server of the protocol that the test plays."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable

from urlserver import Client, ClientClosed, Counts, Failed, Job, JobEnded

from .peer import PATIENCE, AsyncTest, Peer, Reader, Writer

LINE = b"17.0.1 10001 192.0.2.7 http://a.example/dir/\n"
SECOND = b"18.0.1 10002 192.0.2.8 http://b.example/\n"


class ClientTest(AsyncTest):
    """One client, one server."""

    async def test_first_lines(self) -> None:
        async def talk(reader: Reader, writer: Writer) -> None:
            for want in [b"AUTH secret\n", b"SPIDER me\n", b"PAYLOAD\n", b"ROOM 0\n", b"COUNT 1\n"]:
                self.assertEqual(await reader.readline(), want)
            writer.write(b"COUNT 1 0 0 0 0\n")
            self.assertEqual(await reader.readline(), b"ROOM 32\n")
            writer.write(LINE.replace(b"\n", b" aGk\n"))
            self.assertEqual(await reader.readline(), b"17.0.1 DONE 200\n")

        async with Peer(talk) as peer:
            client = Client(peer.address, token="secret", spiderid="me", payload=True)
            async with client:
                self.assertEqual(await client.count(), Counts(0, 0, 0, 0))
                async for job in client.jobs(room=32):
                    self.assertEqual((job.doc_id, job.ip), ("10001", "192.0.2.7"))
                    self.assertEqual((job.url, job.payload), ("http://a.example/dir/", b"hi"))
                    self.assertTrue(job.done(200))
                    break

    async def one(self, use: Callable[[Job], object], *want: bytes) -> None:
        """Give one job to use, and expect lines from the client."""

        async def talk(reader: Reader, writer: Writer) -> None:
            self.assertEqual(await reader.readline(), b"ROOM 1\n")
            writer.write(LINE)
            for line in want:
                self.assertEqual(await reader.readline(), b"17.0.1 " + line)
            self.assertEqual(await reader.readline(), b"ROOM 0\n")
            self.assertEqual(await reader.read(), b"")

        async with Peer(talk) as peer, Client(peer.address) as client:
            async for job in client.jobs():
                use(job)
                break

    async def test_done(self) -> None:
        await self.one(lambda job: job.done(), b"DONE\n")
        await self.one(
            lambda job: job.done(
                301, retry_after="60", changed=True, bytes=7, location="../x?\u00e4"
            ),
            b"DONE 301 60 changed=1 bytes=7 location=http://a.example/x?%C3%A4\n",
        )

    async def test_back_and_working(self) -> None:
        await self.one(lambda job: job.back(2.5), b"BACK 3\n")
        await self.one(lambda job: (job.working(), job.back()), b"WORKING\n", b"BACK\n")

    async def test_ends_once(self) -> None:
        def use(job: Job) -> None:
            self.assertTrue(job.done(200))
            for again in (job.done, job.back):
                with self.assertRaises(JobEnded):
                    again()
            self.assertFalse(job.working())

        await self.one(use, b"DONE 200\n")

    async def test_bad_status_ends_nothing(self) -> None:
        def use(job: Job) -> None:
            with self.assertRaises(ValueError):
                job.done(1000)
            job.done(0)

        await self.one(use, b"DONE 0\n")

    async def body(self, body: Callable[[Job], object], want: bytes) -> None:
        """Run a body inside async with job, and expect a line from the client."""

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(LINE)
            self.assertEqual(await reader.readline(), b"17.0.1 " + want)
            self.assertEqual(await reader.readline(), b"ROOM 0\n")

        async with Peer(talk) as peer, Client(peer.address) as client:
            job = await self.first(client)
            async with job:
                body(job)

    async def first(self, client: Client) -> Job:
        client.room(1)
        return await client.next_job()

    async def test_body(self) -> None:
        await self.body(lambda job: None, b"DONE\n")
        await self.body(lambda job: job.done(404), b"DONE 404\n")
        await self.body(lambda job: job.back(9), b"BACK 9\n")

    async def test_body_raises(self) -> None:
        def body(job: Job) -> None:
            raise KeyError("body")

        def late(job: Job) -> None:
            job.done(200)
            raise KeyError("late")

        with self.assertRaisesRegex(KeyError, "body"):
            await self.body(body, b"BACK\n")
        with self.assertRaisesRegex(KeyError, "late"):
            await self.body(late, b"DONE 200\n")

    async def test_close_gives_back(self) -> None:
        """Jobs that nobody has taken, and those that are open, are given back when it closes."""

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(LINE + SECOND)
            self.assertEqual(await reader.read(), b"ROOM 0\n17.0.1 BACK\n18.0.1 BACK\n")

        async with Peer(talk) as peer:
            async with Client(peer.address) as client:
                job = await self.first(client)
            self.assertTrue(job.lost)
            self.assertFalse(job.done(200))
            with self.assertRaises(ClientClosed):
                await client.next_job()
            with self.assertRaises(ClientClosed):
                client.submit("http://a/")
            with self.assertRaises(ClientClosed):
                client.jobs()

    async def test_put_and_count(self) -> None:
        async def talk(reader: Reader, writer: Writer) -> None:
            self.assertEqual(await reader.readline(), b"ROOM 0\n")
            self.assertEqual(
                await reader.readline(),
                b'PUT 1 {"url":"http://a/","via":"9","unique":"u","payload":"AP8=","metadata":{"a":["b"]}}\n',
            )
            self.assertEqual(await reader.readline(), b"COUNT 2 news\n")
            writer.write(b"COUNT 2 1 2 3 4\nPUT 7 new\nPUT 1 out_of_scope\n")
            self.assertEqual(await reader.readline(), b"COUNT 3\n")
            writer.write(b"COUNT 3 fail\n")
            await reader.readline()
            writer.write(b"PUT 4 fail\n")
            await reader.readline()

        async with Peer(talk) as peer, Client(peer.address) as client:
            put = client.submit(
                "http://a/", via="9", unique="u", payload=b"\0\xff", metadata={"a": "b"}
            )
            self.assertEqual(await client.count("news"), Counts(1, 2, 3, 4))
            self.assertEqual(await put, "out_of_scope")
            with self.assertRaises(Failed):
                await client.count()
            with self.assertRaises(Failed):
                await client.put("http://a/")
            with self.assertRaises(ValueError):
                client.submit("http://a/", payload=bytes(25000))

    async def test_unanswered_puts_are_bounded(self) -> None:
        """At most 256 are sent without an answer; the others follow with the answers."""

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            tags = [(await reader.readline()).split()[1] for _ in range(256)]
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(reader.readline(), 0.05)
            for tag in tags:
                writer.write(b"PUT " + tag + b" new\n")
                writer.write(b"PUT " + (await reader.readline()).split()[1] + b" known\n")
            await reader.read()

        async with Peer(talk) as peer, Client(peer.address) as client:
            results = await client.put_all(f"http://a/{n}" for n in range(512))
            self.assertEqual(results, ["new"] * 256 + ["known"] * 256)

    async def test_until_finished(self) -> None:
        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(LINE)
            self.assertEqual(await reader.readline(), b"17.0.1 DONE\n")
            for answer in [b"1 0 0 1", b"0 1 0 1", b"0 0 7 2"]:
                tag = (await reader.readline()).removeprefix(b"COUNT ").removesuffix(b" news\n")
                writer.write(b"COUNT " + tag + b" " + answer + b"\n")
            self.assertEqual(await reader.readline(), b"ROOM 0\n")

        async with Peer(talk) as peer, Client(peer.address) as client:
            seen = []
            async for job in client.jobs(until_finished=True, crawl="news"):
                async with job:
                    seen.append(job.url)
            self.assertEqual(seen, ["http://a.example/dir/"])

    async def test_each_raises(self) -> None:
        """An error of one body ends the others, and is raised."""

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(LINE + SECOND)
            lines = {await reader.readline() for _ in range(3)}
            self.assertEqual(lines, {b"ROOM 0\n", b"17.0.1 BACK\n", b"18.0.1 BACK\n"})

        async def handle(job: Job) -> None:
            if job.doc_id == "10001":
                await asyncio.sleep(3600)
            raise KeyError(job.doc_id)

        async with Peer(talk) as peer, Client(peer.address) as client:
            with self.assertRaisesRegex(KeyError, "10002"):
                await client.each(handle, room=2)

    async def test_asks_again(self) -> None:
        """What has no answer when the connection ends is asked on the next one, in order."""
        asked = [b'PUT 1 {"url":"http://a/1"}\n', b'PUT 2 {"url":"http://a/2"}\n', b"COUNT 3\n"]

        async def first(reader: Reader, writer: Writer) -> None:
            for want in [b"ROOM 0\n", *asked]:
                self.assertEqual(await reader.readline(), want)
            writer.write(b"PUT 1 new\nPUT 2 ne")

        async def second(reader: Reader, writer: Writer) -> None:
            for want in [b"ROOM 0\n", *asked[1:]]:
                self.assertEqual(await reader.readline(), want)
            writer.write(b"PUT 2 known\nCOUNT 3 1 0 0 0\n")
            self.assertEqual(await reader.readline(), b"ROOM 0\n")

        async with Peer(first, second) as peer, Client(peer.address) as client:
            puts = client.submit("http://a/1"), client.submit("http://a/2")
            self.assertEqual(await client.count(), (1, 0, 0, 0))
            self.assertEqual([await put for put in puts], ["new", "known"])

    async def test_stall(self) -> None:
        """After a stall nothing of what came before is handed out, and the client connects anew."""
        sent = asyncio.Event()

        async def first(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(LINE + SECOND)
            sent.set()
            await reader.read()

        async def second(reader: Reader, writer: Writer) -> None:
            self.assertEqual(await reader.readline(), b"ROOM 4\n")
            writer.write(SECOND.replace(b"18.0.1", b"19.0.1"))
            self.assertEqual(await reader.readline(), b"19.0.1 DONE\n")

        async with Peer(first, second) as peer, Client(peer.address, status_timeout=2) as client:
            client.room(4)
            job = await client.next_job()
            await sent.wait()
            time.sleep(1.1)  # noqa: ASYNC251 - more than half of the status timeout
            self.assertIsNone(client.take())
            self.assertTrue(job.lost)
            again = await client.next_job()
            self.assertEqual(repr(again), "<Job 19.0.1 http://b.example/>")
            self.assertTrue(again.done())

    async def test_working(self) -> None:
        """Jobs that are open, and those that nobody has taken, say WORKING again and again."""

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(LINE + SECOND)
            want = {b"17.0.1 WORKING\n", b"18.0.1 WORKING\n"}
            for _ in range(3):
                self.assertEqual({await reader.readline(), await reader.readline()}, want)
            finished.set()

        finished = asyncio.Event()
        async with Peer(talk) as peer, Client(peer.address, status_timeout=2) as client:
            job = await self.first(client)
            await finished.wait()
            self.assertTrue(job.done())

    async def test_bad_lines(self) -> None:
        """A hundred bad lines in a row end the connection; fewer are passed over."""
        taken = asyncio.Event()

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()
            writer.write(b"what?\n" * 99 + LINE + b"what?\n" * 99)
            await taken.wait()
            writer.write(b"what?\n")
            self.assertEqual(await reader.read(), b"")

        async with Peer(talk) as peer, Client(peer.address) as client:
            job = await self.first(client)
            async with job:
                taken.set()
                await asyncio.sleep(3600)  # until the job is lost
            self.assertTrue(job.lost)

    async def test_says_why(self) -> None:
        """The log says why there is no connection, and what may help."""

        async def talk(reader: Reader, writer: Writer) -> None:
            await reader.readline()  # and refuses what it says

        async with Peer(talk) as peer:
            for address, want in [
                (peer.address, "before it said anything; are token and TLS as"),
                ("a" * 80 + ".example:1", "label"),
            ]:
                with self.assertLogs("urlserver", "WARNING") as logs:
                    async with Client(address, token="other"):
                        for _ in range(int(PATIENCE * 100)):
                            if logs.output:
                                break
                            await asyncio.sleep(0.01)
                self.assertIn(want, logs.output[0])

    async def test_close_with_cancelled_put(self) -> None:
        """A put that nobody waits for any more ends with its client, and nobody hears of it."""
        heard: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: heard.append(context))

        async def cancel() -> None:
            async with Peer() as peer, Client(peer.address) as client:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(client.put("http://a/"), 0.01)

        await cancel()
        await asyncio.sleep(0)
        gc.collect()
        self.assertEqual(heard, [])

    async def test_close_while_connecting(self) -> None:
        """A client that is closed at any step of its connecting ends."""
        async with Peer() as peer:
            for steps in range(20):
                async with Client(peer.address):
                    for _ in range(steps):
                        await asyncio.sleep(0)

    async def test_not_entered(self) -> None:
        with self.assertRaises(RuntimeError):
            Client("127.0.0.1:1").jobs()

    async def test_arguments(self) -> None:
        for address in ["", "host", "host:", ":1", "host:0", "host:65536", "host:1/", "u@h:1"]:
            with self.subTest(address), self.assertRaises(ValueError):
                Client(address)
        Client("[::1]:4101")
        with self.assertRaises(ValueError):
            Client("host:1", token="a b")
        with self.assertRaises(ValueError):
            Client("host:1", status_timeout=0)
