"""Without torch there is no oracle: `make test` leaves these tests alone, and `make oracle` finds them."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None or find_spec("transformers") is None:
    collect_ignore_glob = ["test_*.py"]
