"""Gaps, stalls and pauses, with made up times."""

from __future__ import annotations

import unittest

from urlserver.pace import MARK_AGE, SWEEP, Pauses, Spacing, StallWatch


class SpacingTest(unittest.TestCase):
    """The gaps between jobs of one address."""

    def test_late_taker(self) -> None:
        """A job that was taken 9 s late moves the next one of its address, by a twentieth less."""
        spacing = Spacing()
        self.assertEqual(spacing.wait("a", 0.0, 9.0), 0)
        spacing.taken("a", 0.0, 9.0)
        self.assertEqual(spacing.wait("a", 10.0, 10.0), 8.5)
        self.assertEqual(spacing.wait("a", 10.0, 18.5), 0)
        self.assertEqual(spacing.wait("b", 10.0, 10.0), 0)

    def test_quick_taker(self) -> None:
        """Jobs that are taken when they come wait for nothing."""
        spacing = Spacing()
        for at in [1.0, 1.5, 7.0]:
            self.assertEqual(spacing.wait("a", at, at), 0)
            spacing.taken("a", at, at)

    def test_catches_up(self) -> None:
        """A taker that was late once, and is always a little late, does not stay late.

        The daemon sends the next line when a job has ended. No gap is shorter than 0.95 of the one
        that is due.
        """
        spacing, line, before, late = Spacing(), 0.0, -10.0, 2.0
        for _ in range(100):
            now = line + late
            now += spacing.wait("a", line, now) + 0.005
            spacing.taken("a", line, now)
            self.assertGreaterEqual(now - before, 0.95 * 0.1)
            lateness = now - line
            before, line, late = now, max(now + 0.01, line + 0.1), 0.001
        self.assertLess(lateness, 0.15)

    def test_forgets(self) -> None:
        spacing = Spacing()
        for n in range(SWEEP):
            spacing.taken(str(n), 0.0, 0.0)
        spacing.taken("last", MARK_AGE + 1, MARK_AGE + 1)
        self.assertEqual(len(spacing._marks), SWEEP + 1)
        for n in range(SWEEP):
            spacing.taken(f"new {n}", MARK_AGE + 1, MARK_AGE + 1)
        self.assertEqual(len(spacing._marks), SWEEP + 1)


class StallWatchTest(unittest.TestCase):
    """Two clocks that are read all the time."""

    def test_stalls(self) -> None:
        for name, monotonic, wall, want in [
            ("none", 2.0, 102.0, False),
            ("stopped", 63.0, 163.0, True),
            ("the machine slept", 2.0, 163.0, True),
            ("the wall clock was set back", 2.0, 1.0, False),
        ]:
            with self.subTest(name):
                watch = StallWatch(60.0, 1.0, 101.0)
                self.assertEqual(watch.stalled(monotonic, wall), want)
                self.assertFalse(watch.stalled(monotonic + 1, wall + 1))


class PausesTest(unittest.TestCase):
    """Pauses before connecting again."""

    def test_double(self) -> None:
        pauses = Pauses(1.0, 5.0)
        got = [pauses.next(useful=False) for _ in range(5)]
        self.assertEqual(got, [1.0, 2.0, 4.0, 5.0, 5.0])
        self.assertEqual(pauses.next(useful=True), 1.0)
        self.assertEqual(pauses.next(useful=False), 2.0)
