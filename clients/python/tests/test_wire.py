"""The lines, byte for byte."""

from __future__ import annotations

import unittest

from urlserver import wire

FETCH = wire.Fetch("17.0.1", "10001", "192.0.2.7", "http://a.example/", None)


class Parse(unittest.TestCase):
    """Lines from the daemon."""

    def test_valid(self) -> None:
        cases: list[tuple[bytes, bool, wire.Line]] = [
            (b"17.0.1 10001 192.0.2.7 http://a.example/", False, FETCH),
            (b"17.0.1 10001 192.0.2.7 http://a.example/ -", True, FETCH),
            (
                b"17.0.1 10001 192.0.2.7 http://a.example/ -_8",
                True,
                FETCH._replace(payload=b"\xfb\xff"),
            ),
            (b"PUT 1 new", False, wire.PutAnswer("1", "new")),
            (b"PUT a out_of_scope 10001", True, wire.PutAnswer("a", "out_of_scope")),
            (b"COUNT 2 1 2 3 4", False, wire.CountAnswer("2", wire.Counts(1, 2, 3, 4))),
            (b"COUNT 2 fail", False, wire.CountAnswer("2", None)),
        ]
        for line, payload, want in cases:
            with self.subTest(line=line):
                self.assertEqual(wire.parse(line, payload=payload), want)

    def test_invalid(self) -> None:
        for line, payload in [
            (b"", False),
            (b"17.0.1 10001 192.0.2.7", False),
            (b"17.0.1 10001 192.0.2.7 http://a.example/", True),
            (b"17.0.1 10001 192.0.2.7 http://a.example/ -", False),
            (b"17.0.1 10001 192.0.2.7 http://a.example/ a", True),
            (b"17.0.1  10001 192.0.2.7 http://a.example/", False),
            (b" 17.0.1 10001 192.0.2.7 http://a.example/", False),
            (b"17.0.1 10001 192.0.2.7 http://a.example/\xc3\xa4", False),
            (b"x 10001 192.0.2.7 http://a.example/", False),
            (b"PUT 1 maybe", False),
            (b"PUT 1", False),
            (b"COUNT 2 1 2 3", False),
            (b"COUNT 2 1 2 3 -4", False),
        ]:
            with self.subTest(line=line):
                self.assertIsNone(wire.parse(line, payload=payload))

    def test_lines_cut_anywhere(self) -> None:
        """Wherever a stream is cut, its lines are the same."""
        stream = b"a b\r\n\nPUT 1 new\n"
        for cut in range(len(stream) + 1):
            lines = wire.Lines()
            self.assertEqual(
                lines.feed(stream[:cut]) + lines.feed(stream[cut:]), [b"a b", b"", b"PUT 1 new"]
            )

    def test_endless_line(self) -> None:
        lines = wire.Lines()
        with self.assertRaises(ValueError):
            for _ in range(wire.MAX_INPUT_LINE):
                lines.feed(b"x" * 1000)


class Format(unittest.TestCase):
    """Lines to the daemon."""

    def test_done(self) -> None:
        long = "http://a.example/" + 8200 * "x"
        for args, want in [
            ((None, None, None, None, None), b"1.0.1 DONE\n"),
            ((200, None, None, None, None), b"1.0.1 DONE 200\n"),
            ((0, None, None, None, None), b"1.0.1 DONE 0\n"),
            ((503, 120, None, None, None), b"1.0.1 DONE 503 120\n"),
            ((304, None, False, 0, None), b"1.0.1 DONE 304 changed=0 bytes=0\n"),
            (
                (301, 1, True, 7, "http://b/"),
                b"1.0.1 DONE 301 1 changed=1 bytes=7 location=http://b/\n",
            ),
            ((301, None, None, None, long), b"1.0.1 DONE 301\n"),
        ]:
            with self.subTest(args=args):
                self.assertEqual(wire.done("1.0.1", *args), want)

    def test_done_refused(self) -> None:
        for args in [
            (1000, None, None, None, None),
            (-1, None, None, None, None),
            (None, 1, None, None, None),
        ]:
            with self.subTest(args=args), self.assertRaises(ValueError):
                wire.done("1.0.1", *args)

    def test_back(self) -> None:
        for seconds, want in [
            (0, b"1 BACK\n"),
            (-1, b"1 BACK\n"),
            (0.1, b"1 BACK 1\n"),
            (60, b"1 BACK 60\n"),
        ]:
            self.assertEqual(wire.back("1", seconds), want)

    def test_put(self) -> None:
        self.assertEqual(
            wire.put("1", {"url": "http://a/\n\u00e4", "depth": 2}),
            b'PUT 1 {"url":"http://a/\\n\xc3\xa4","depth":2}\n',
        )
        for url in ["http://a/" + 33000 * "x", "http://a/\ud800"]:
            with self.assertRaises(ValueError):
                wire.put("1", {"url": url})

    def test_words(self) -> None:
        self.assertEqual(wire.greeting("", "", False), b"")
        self.assertEqual(wire.greeting("t", "s", True), b"AUTH t\nSPIDER s\nPAYLOAD\n")
        for token in ["a b", "a\n", "\u00e4"]:
            with self.assertRaises(ValueError):
                wire.greeting(token, "", False)
        self.assertEqual(wire.count("1", ""), b"COUNT 1\n")
        self.assertEqual(wire.count("1", "news"), b"COUNT 1 news\n")

    def test_retry_after(self) -> None:
        now = 784111777.0  # Sun, 06 Nov 1994 08:49:37 GMT
        for value, want in [
            (None, None),
            ("120", 120),
            (" 120 ", 120),
            (1.5, 2),
            (-1, None),
            (float("nan"), None),
            ("soon", None),
            ("-1", None),
            ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
            ("Sun, 06 Nov 1994 08:40:37 GMT", 0),
            ("9" * 400, 999_999_999),
        ]:
            with self.subTest(value=value):
                self.assertEqual(wire.retry_seconds(value, now), want)

    def test_location(self) -> None:
        base = "http://a.example/dir/page"
        for location, want in [
            (None, None),
            ("", None),
            ("/x", "http://a.example/x"),
            ("x y", "http://a.example/dir/x%20y"),
            ("//b.example/\u00e4", "http://b.example/%C3%A4"),
            ("http://[x", None),
            ("?q=%20", "http://a.example/dir/page?q=%20"),
        ]:
            with self.subTest(location=location):
                self.assertEqual(wire.absolute(base, location), want)
