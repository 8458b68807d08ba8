"""A stand-in for ``vllm bench serve``: it writes what the tool writes, with the time per token it is told."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

BEHAVIOUR = json.loads(os.environ.get("BEHAVIOUR", "{}"))
options = dict(zip(sys.argv, sys.argv[1:], strict=False))
completed = int(options["--num-prompts"])
if BEHAVIOUR.get("dies_at") == "benchmark":
    completed = 1
    urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8000/die", b"{}"))
time.sleep(BEHAVIOUR.get("pace", 0))
folder = Path(options["--result-dir"])
folder.mkdir(parents=True, exist_ok=True)
tpot = BEHAVIOUR.get("tpot", 25.0) * (1 + 0.002 * (int(options["--seed"]) % 3))
result = {"completed": completed, "mean_tpot_ms": tpot, "mean_ttft_ms": 3 * tpot, "output_throughput": 1000 / tpot}
(folder / options["--result-filename"]).write_text(json.dumps(result), encoding="utf-8")
