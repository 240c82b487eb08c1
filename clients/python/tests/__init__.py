"""Tests of the client. They want nothing but Python, and Go for those with a real daemon."""
