"""Crawlee's own tests of request queues: conftest.py is for them, and ./test fetches them."""
