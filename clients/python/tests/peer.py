"""A server of the protocol that does what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import unittest
from collections.abc import Awaitable, Callable
from typing import TypeAlias

PATIENCE = 120.0
"""Seconds after which a test has failed."""


class AsyncTest(unittest.IsolatedAsyncioTestCase):
    """A test case whose tests fail if they take PATIENCE."""

    def __init__(self, name: str) -> None:
        """Put a time limit around the test's method."""
        super().__init__(name)
        method = getattr(self, name)

        async def limited() -> None:
            await asyncio.wait_for(method(), PATIENCE)

        if asyncio.iscoroutinefunction(method):
            setattr(self, name, limited)


Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Talk = Callable[[Reader, Writer], Awaitable[None]]


class Peer:
    """Listens on loopback. The n-th connection is handled by the n-th of talks, and then closed.

    Further connections stay open and silent.
    """

    def __init__(self, *talks: Talk) -> None:
        """Make a server; async with starts it."""
        self._talks = list(talks)
        self._tasks: list[asyncio.Task[None]] = []
        self.connections = 0
        self.address = ""

    async def __aenter__(self) -> Peer:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all connections. A test's failure inside a talk is raised here."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await task

    async def _accept(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        talk = self._talks.pop(0) if self._talks else _silent
        task = asyncio.ensure_future(_run(talk, reader, writer))
        self._tasks.append(task)


async def _run(talk: Talk, reader: Reader, writer: Writer) -> None:
    try:
        await talk(reader, writer)
    finally:
        writer.close()


async def _silent(reader: Reader, writer: Writer) -> None:
    await reader.read()
