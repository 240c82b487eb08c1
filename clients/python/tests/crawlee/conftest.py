"""Fixtures for Crawlee's own tests of request queues: the storage client is the URL server's."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from crawlee import service_locator
from crawlee.storage_clients import MemoryStorageClient, StorageClient

from tests.daemon import Daemon
from urlserver.crawlee import UrlServerStorageClient

# The tests want all requests of one host at one time and at once, as a plain queue gives them.
SETTINGS = """
Req_Host_Per_Sec = 1000
Req_Host_Concurrent = 64
robots.enabled = false
"""


class _Names(socketserver.BaseRequestHandler):
    """Answers each question for an IPv4 address with 127.0.0.1."""

    def handle(self) -> None:
        query, sock = self.request
        end = query.index(b"\0", 12) + 5
        question, is_a = query[12:end], query[end - 4 : end - 2] == b"\0\1"
        header = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
        answer = b"\xc0\x0c\0\1\0\1\0\0\x0e\x10\0\4\x7f\0\0\1" if is_a else b""
        sock.sendto(header + question + answer, self.client_address)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """Return a daemon that finds all names on loopback."""
    names = socketserver.UDPServer(("127.0.0.1", 0), _Names)
    threading.Thread(target=names.serve_forever, daemon=True).start()
    daemon = Daemon(SETTINGS)
    daemon.dns = f"127.0.0.1:{names.server_address[1]}"
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.close()
        names.shutdown()
        names.server_close()


@pytest.fixture(autouse=True)
def _isolate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reset what Crawlee keeps for the process."""
    monkeypatch.setenv("CRAWLEE_STORAGE_DIR", str(tmp_path))
    service_locator._configuration = None
    service_locator._event_manager = None
    service_locator._storage_client = None
    service_locator.storage_instance_manager.clear_cache()


@pytest.fixture
async def storage_client(daemon: Daemon, _isolate: None) -> AsyncGenerator[StorageClient]:
    """Return the storage client that the tests use."""
    client = UrlServerStorageClient(daemon.spiders, http_at=daemon.http, base=MemoryStorageClient())
    service_locator.set_storage_client(client)
    yield client
    await client.close()
