"""Host names resolve to the addresses that the daemon's lines name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import idna
from scrapy.resolver import HostResolution
from scrapy.utils.datatypes import LocalCache
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IResolutionReceiver,
)
from zope.interface import implementer


@implementer(IHostnameResolver)
class Resolver:
    """Answers names of hosts that the daemon has sent with the addresses of its lines.

    It asks the reactor's own resolver for others: those of requests that do not pass the scheduler.
    All methods are for the reactor's thread.
    """

    def __init__(self, others: IHostnameResolver, size: int):
        self._others = others
        self._addresses: LocalCache[str, str] = LocalCache(size)  # by host, in ASCII

    @classmethod
    def install(cls, reactor: Any, size: int) -> Resolver:
        """Returns the resolver of the reactor, which is one of this class from now on."""
        if not isinstance(reactor.nameResolver, cls):
            reactor.installNameResolver(cls(reactor.nameResolver, size))
        return reactor.nameResolver

    def set(self, host: str, address: str) -> bool:
        """Sets the address of a host. Tells whether the host had another one."""
        before = self._addresses.pop(host, address)
        self._addresses[host] = address
        return before != address

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type[IAddress]] | None = None,
        transportSemantics: str = "TCP",
    ) -> IHostResolution:
        address = self._addresses.get(_ascii(hostName))
        if address is None:
            return self._others.resolveHostName(
                resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
            )
        kind = IPv6Address if ":" in address else IPv4Address
        resolution = HostResolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        resolutionReceiver.addressResolved(kind("TCP", address, portNumber))
        resolutionReceiver.resolutionComplete()
        return resolution


def _ascii(host: str) -> str:
    """Twisted asks for internationalised names in Unicode."""
    if host.isascii():
        return host.lower()
    try:
        return idna.encode(host).decode()
    except idna.IDNAError:
        return host.encode("idna").decode()
