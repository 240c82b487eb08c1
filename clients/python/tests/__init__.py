"""Tests of the client. They want nothing but Python, and Go for those with a real daemon."""

import logging

logging.getLogger("urlserver").setLevel(logging.CRITICAL)  # connections end all the time here
logging.getLogger("asyncio").setLevel(logging.ERROR)  # slow callbacks
