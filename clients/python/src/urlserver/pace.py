"""Two clocks of a client, as values: the gaps between requests, and stalls. Nothing here sleeps."""

from __future__ import annotations

MARK_AGE = 600.0
"""Seconds after which the last request to an address does not matter."""

KEPT = 0.95
"""How much of the time between two lines a client keeps that catches up."""

SWEEP = 1024
"""Number of addresses from which on old ones are forgotten."""


class Spacing:
    """Keeps the daemon's gaps where jobs wait for somebody to take them.

    The daemon paces the lines. A job that waited here was taken later than its line came, so the
    next job of its address has to wait, too: two jobs of one address are taken no sooner after each
    other than their lines came, but for a twentieth. Without that, jobs would become later and
    later: each is a little later than it may be, and where the daemon waits for its end, so is the
    next line.
    """

    def __init__(self) -> None:
        """Begin without any address."""
        self._marks: dict[str, tuple[float, float]] = {}  # when the line came, when it was taken
        self._sweep = SWEEP

    def wait(self, ip: str, line: float, now: float) -> float:
        """Return the seconds until a job may be taken whose line came at that time; 0: now."""
        mark = self._marks.get(ip)
        if mark is None or line < mark[0]:
            return 0.0
        return max(0.0, mark[1] + KEPT * (line - mark[0]) - now)

    def taken(self, ip: str, line: float, now: float) -> None:
        """Note that a job was taken now."""
        mark = self._marks.get(ip)
        if mark is None or line >= mark[0]:
            self._marks[ip] = (line, now)
        if len(self._marks) >= self._sweep:
            self._marks = {k: m for k, m in self._marks.items() if now - m[1] <= MARK_AGE}
            self._sweep = max(SWEEP, 2 * len(self._marks))


class StallWatch:
    """Detects that the process was stopped, or that its machine slept.

    A stall shows as two readings of the clocks that are further apart than most. The monotonic
    clock stops while a machine sleeps; the wall clock does not.
    """

    def __init__(self, most: float, monotonic: float, wall: float) -> None:
        """Watch for stalls of more than most seconds. The other arguments are first readings."""
        self._most = most
        self._last = (monotonic, wall)

    def stalled(self, monotonic: float, wall: float) -> bool:
        """Take new readings, and return whether there was a stall since the last ones."""
        gap = max(monotonic - self._last[0], wall - self._last[1])
        self._last = (monotonic, wall)
        return gap > self._most


class Pauses:
    """The pauses before connecting again: they double up to most seconds."""

    def __init__(self, first: float = 0.1, most: float = 5.0) -> None:
        """Begin with the first pause."""
        self._first, self._most = first, most
        self._next = first

    def next(self, useful: bool) -> float:
        """Return the next pause. useful: the last connection was, so that pauses begin again."""
        if useful:
            self._next = self._first
        pause = self._next
        self._next = min(2 * pause, self._most)
        return pause
