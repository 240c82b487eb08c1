"""The lines of the protocol: bytes to values and back. Nothing here reads or writes a socket.

protocol/PROTOCOL.md of the URL server describes the lines.
"""

from __future__ import annotations

import base64
import binascii
import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, urljoin

MAX_LINE = 8192
"""The most bytes of a line to the daemon, with its line end."""

MAX_PUT_LINE = 32768
"""The same of a PUT line."""

MAX_INPUT_LINE = 65536
"""The most bytes of a line from the daemon. No line with a payload is nearly as long."""

_WORD = re.compile(rb"[!-~]+")
_TRANS = re.compile(rb"[0-9][!-~]*")
_NUMBER = re.compile(rb"[0-9]{1,18}")
_RESULTS = frozenset(["new", "known", "invalid", "out_of_scope", "fail"])
_MOST_SECONDS = 999_999_999


class Fetch(NamedTuple):
    """A line of the daemon that sends a document to be fetched."""

    trans_id: str
    doc_id: str
    ip: str
    url: str
    payload: bytes | None


class PutAnswer(NamedTuple):
    """The daemon's answer to a PUT."""

    tag: str
    result: str


class Counts(NamedTuple):
    """How many documents a crawl has, or all crawls have."""

    scheduled: int
    """Due now."""
    in_flight: int
    """At spiders, or on their way to them."""
    later: int
    """Due later."""
    completed: int
    """Ended."""

    @property
    def finished(self) -> bool:
        """Whether nothing is due now or in flight."""
        return self.scheduled == 0 and self.in_flight == 0


class CountAnswer(NamedTuple):
    """The daemon's answer to a COUNT. Without counts, it could not count."""

    tag: str
    counts: Counts | None


Line = Fetch | PutAnswer | CountAnswer


class Lines:
    """Cuts a stream into lines. The beginning of a line is no line."""

    def __init__(self) -> None:
        """Begin a stream."""
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that data completes, without their ends.

        Raises ValueError if a line is longer than MAX_INPUT_LINE.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if max(map(len, lines), default=0) >= MAX_INPUT_LINE or len(self._rest) >= MAX_INPUT_LINE:
            raise ValueError(f"a line is longer than {MAX_INPUT_LINE} bytes")
        return [line.removesuffix(b"\r") for line in lines]


def parse(line: bytes, *, payload: bool) -> Line | None:
    """Return what a line of the daemon says, or None if it has no valid form.

    payload says whether the client has asked for payloads, so that lines have a fifth field.
    """
    fields = line.split(b" ")
    if not all(_WORD.fullmatch(field) for field in fields):
        return None
    if fields[0] == b"PUT":
        return _parse_put_answer(fields)
    if fields[0] == b"COUNT":
        return _parse_count_answer(fields)
    return _parse_fetch(fields, payload)


def _parse_fetch(fields: list[bytes], payload: bool) -> Fetch | None:
    if len(fields) != 4 + payload or not _TRANS.fullmatch(fields[0]):
        return None
    try:
        data = decode_payload(fields[4]) if payload else None
    except ValueError:
        return None
    trans_id, doc_id, ip, url = (field.decode("ascii") for field in fields[:4])
    return Fetch(trans_id, doc_id, ip, url, data)


def _parse_put_answer(fields: list[bytes]) -> PutAnswer | None:
    if len(fields) not in (3, 4):
        return None
    tag, result = fields[1].decode("ascii"), fields[2].decode("ascii")
    return PutAnswer(tag, result) if result in _RESULTS else None


def _parse_count_answer(fields: list[bytes]) -> CountAnswer | None:
    if len(fields) == 3 and fields[2] == b"fail":
        return CountAnswer(fields[1].decode("ascii"), None)
    if len(fields) != 6 or not all(_NUMBER.fullmatch(field) for field in fields[2:]):
        return None
    return CountAnswer(fields[1].decode("ascii"), Counts(*map(int, fields[2:])))


def decode_payload(field: bytes) -> bytes | None:
    """Return the payload of a fifth field: base64url without padding, or "-" for none."""
    if field == b"-":
        return None
    try:
        text = field.translate(bytes.maketrans(b"-_", b"+/")) + b"=" * (-len(field) % 4)
        return base64.b64decode(text, validate=True)
    except binascii.Error as err:
        raise ValueError(f"payload: {err}") from err


def put(tag: str, members: Mapping[str, object]) -> bytes:
    """Return a PUT line. Raises ValueError if no line can hold it."""
    text = json.dumps(members, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    line = f"PUT {tag} {text}\n".encode()
    if len(line) > MAX_PUT_LINE:
        raise ValueError(f"a PUT of {len(line)} bytes: the protocol allows {MAX_PUT_LINE}")
    return line


def count(tag: str, crawl: str) -> bytes:
    """Return a COUNT line; an empty crawl means all crawls."""
    return f"COUNT {tag} {word('crawl', crawl)}\n".encode() if crawl else f"COUNT {tag}\n".encode()


def room(most: int) -> bytes:
    """Return a ROOM line."""
    return f"ROOM {most}\n".encode("ascii")


def greeting(token: str, spiderid: str, payload: bool) -> bytes:
    """Return the first lines of a connection."""
    lines = []
    if token:
        lines.append(f"AUTH {word('token', token)}\n")
    if spiderid:
        lines.append(f"SPIDER {word('spiderid', spiderid)}\n")
    if payload:
        lines.append("PAYLOAD\n")
    return "".join(lines).encode("ascii")


def word(name: str, text: str) -> str:
    """Return text if it may be a field of a line. Raises ValueError if not."""
    if not text.isascii() or not _WORD.fullmatch(text.encode("ascii")):
        raise ValueError(f"{name} {text!r}: has to be printable ASCII without spaces")
    return text


def done(
    trans_id: str,
    status: int | None,
    retry_after: int | None,
    changed: bool | None,
    size: int | None,
    location: str | None,
) -> bytes:
    """Return a DONE line. Raises ValueError if the status is no HTTP status."""
    fields = [trans_id, "DONE"]
    if status is None and (retry_after, changed, size, location) != (None,) * 4:
        raise ValueError("retry_after, changed, bytes and location need a status")
    if status is not None:
        if not 0 <= status <= 999:
            raise ValueError(f"status {status}: has to be 0 to 999")
        fields.append(str(status))
    if retry_after is not None:
        fields.append(str(retry_after))
    if changed is not None:
        fields.append(f"changed={int(changed)}")
    if size is not None and size >= 0:
        fields.append(f"bytes={size}")
    line = " ".join(fields)
    if location and len(line) + len(" location=\n") + len(location) <= MAX_LINE:
        line += " location=" + location
    return (line + "\n").encode("ascii")


def back(trans_id: str, seconds: float) -> bytes:
    """Return a BACK line. Fractions of a second are rounded up."""
    whole = min(max(0, int(-(-seconds // 1))), _MOST_SECONDS)
    return f"{trans_id} BACK {whole}\n".encode() if whole else f"{trans_id} BACK\n".encode()


def working(trans_id: str) -> bytes:
    """Return a WORKING line."""
    return f"{trans_id} WORKING\n".encode("ascii")


def retry_seconds(value: float | str | None, now: float | None = None) -> int | None:
    """Return a Retry-After in whole seconds, rounded up.

    value is a number of seconds or the header's text: seconds or a date. None if it is neither.
    """
    if isinstance(value, str):
        value = _header_seconds(value.strip(), time.time() if now is None else now)
    if value is None or not value >= 0:
        return None
    return int(-(-min(value, _MOST_SECONDS) // 1))


def _header_seconds(text: str, now: float) -> float | None:
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None


def absolute(base: str, location: str | None) -> str | None:
    """Return a Location header as an absolute URL in ASCII, or None if it cannot be one."""
    if not location or not location.strip():
        return None
    try:
        joined = urljoin(base, location.strip())
        return quote(joined, safe="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    except ValueError:  # as of "http://[x"
        return None
