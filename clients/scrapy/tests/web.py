"""A made web on loopback, with a host on each of many addresses, that remembers who was asked when.

web.py HOSTS PAGES serves HOSTS hosts with PAGES pages each on one port, which it prints. Pages link
to all pages of their host but the first, and to the first of some other hosts. GET /log answers
with a line of JSON for each request so far: address, path, who asked (the User-Agent) and when.
GET /counts tells how often who asked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import sys
import time
from collections import Counter

FIRST = 0x7F010001  # 127.1.0.1


def host(number: int) -> str:
    return str(ipaddress.ip_address(FIRST + number))


class Web:
    def __init__(self, hosts: int, pages: int):
        self.hosts, self.pages, self.port = hosts, pages, 0
        self.log: list[tuple[str, str, str, float]] = []
        self.counts: Counter[str] = Counter()

    async def serve(self) -> None:
        server = await asyncio.get_running_loop().create_server(
            lambda: Connection(self), "0.0.0.0", 0, backlog=4096
        )
        self.port = server.sockets[0].getsockname()[1]
        print(self.port, flush=True)
        await server.serve_forever()

    def page(self, address: str, path: str) -> bytes:
        links = [f"/{n}" for n in range(1, self.pages)]
        me = int(ipaddress.ip_address(address)) - FIRST
        others = [(me * 7 + step) % self.hosts for step in (1, 2, 3)]
        links += [f"http://{host(other)}:{self.port}/0" for other in others]
        return "".join(f'<a href="{link}">x</a>' for link in links).encode()


class Connection(asyncio.Protocol):
    def __init__(self, web: Web):
        self.web, self.read = web, b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.address = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        self.read += data
        while b"\r\n\r\n" in self.read:
            head, self.read = self.read.split(b"\r\n\r\n", 1)
            lines = head.decode().split("\r\n")
            agent = next(
                (line[12:] for line in lines if line.lower().startswith("user-agent: ")), ""
            )
            self.answer(lines[0].split(" ")[1], agent)

    def answer(self, path: str, agent: str) -> None:
        if path == "/log":
            body = "\n".join(map(json.dumps, self.web.log)).encode()
        elif path == "/counts":
            body = json.dumps(self.web.counts).encode()
        else:
            body = self.web.page(self.address, path)
            self.web.log.append((self.address, path, agent, time.monotonic()))
            self.web.counts[agent] += 1
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)


if __name__ == "__main__":
    asyncio.run(Web(int(sys.argv[1]), int(sys.argv[2])).serve())
