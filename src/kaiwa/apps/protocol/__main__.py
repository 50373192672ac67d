"""`python -m kaiwa.apps.protocol`: the protocol as TypeScript, or with `--json` as JSON schema."""

from __future__ import annotations

import json
import sys

from kaiwa.apps.protocol.typescript import json_schema, typescript

print(json.dumps(json_schema(), indent=2) if "--json" in sys.argv[1:] else typescript(), end="")
