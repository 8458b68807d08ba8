"""A stand-in for ``vllm serve``, small enough to boot in a second: the same addresses, and lines a real log has."""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BEHAVIOUR: dict[str, Any] = json.loads(os.environ.get("BEHAVIOUR", "{}"))
CONTEXT = int(sys.argv[sys.argv.index("--max-model-len") + 1])
LOST = "Assertion error (/workspace/.deps/deepgemm-src/csrc/apis/layout.hpp:60): Unknown SF transformation"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    time.sleep(BEHAVIOUR.get("pace", 0))


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200, {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if self.path == "/die" or (BEHAVIOUR.get("dies_at") and self.path.endswith(BEHAVIOUR["dies_at"])):
            self._answer(500, {"error": {"message": "EngineCore encountered an issue."}})
            say("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.")
            os._exit(0)
        time.sleep(BEHAVIOUR.get("pace", 0))
        used = {"prompt_tokens": len(asked.get("prompt", [0])), "completion_tokens": asked["max_tokens"]}
        self._answer(200, {"choices": [{}], "usage": used})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Not in a log that is read for its causes."""

    def _answer(self, status: int, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


say(
    "(EngineCore pid=23) INFO 11-29 11:27:59 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
    f"model='/models/tiny', max_seq_len={CONTEXT}, tensor_parallel_size=2, enforce_eager=True, "
    "'cudagraph_mode': <CUDAGraphMode.NONE: 0>"
)
if BEHAVIOUR.get("lost"):
    say(f"(EngineCore pid=23) ERROR 11-29 11:27:59 [core.py:1510] RuntimeError: {LOST}")
    say("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}")
    sys.exit(1)
if BEHAVIOUR.get("eats"):
    eaten = []
    while True:
        eaten.append(b"\1" * (16 << 20))
say("(Worker_TP0 pid=37) INFO 11-29 11:53:35 [default_loader.py:501] Loading weights took 0.00 seconds")
if BEHAVIOUR.get("fits", 1 << 30) < CONTEXT:
    say(
        "(EngineCore pid=24) ERROR 11-29 11:30:41 [core.py:1510] ValueError: To serve at least one request with the "
        f"model's max seq len ({CONTEXT}), (0.01 GiB KV cache is needed, which is larger than the available KV cache "
        "memory (0.0 GiB). Based on the available memory, the estimated maximum model length is "
        f"{BEHAVIOUR['fits']}. Try increasing `gpu_memory_utilization`."
    )
    sys.exit(1)
say(
    "(EngineCore pid=25) INFO 11-29 11:54:11 [kv_cache_utils.py:2327] CPU KV cache size: 16,384 tokens, "
    f"Maximum concurrency for {CONTEXT:,} tokens per request: 1.00x"
)
if BEHAVIOUR.get("hangs"):
    time.sleep(3600)
ThreadingHTTPServer(("127.0.0.1", 8000), Answers).serve_forever()
