"""vLLM's own benchmark, run beside the server in its container, and what it writes. Pure.

``vllm bench serve`` leaves with 0 also when every request failed, so the numbers count only when as many requests were
completed as were asked (https://docs.vllm.ai/en/latest/cli/bench/serve.html).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from bisector.boot.comparison import spread
from bisector.boot.ports import PORT
from bisector.boot.profile import Benchmark, Profile
from bisector.errors import Unreadable
from bisector.trials import Pass

_FOLDER: Final = "/tmp/bisector"  # noqa: S108 - in the container, which is ours alone and is removed


def result_path(ordinal: int) -> str:
    """Where a pass leaves its numbers, in the container."""
    return f"{_FOLDER}/{ordinal}.json"


def command(profile: Profile, benchmark: Benchmark, ordinal: int) -> tuple[str, ...]:
    """The command of one pass."""
    return (
        *("vllm", "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"),
        *("--host", "127.0.0.1", "--port", str(PORT)),
        *("--model", profile.served_name, "--tokenizer", profile.model, *_tokenizer_mode(profile)),
        *("--dataset-name", "random", "--ignore-eos", "--temperature", "0"),
        *("--num-prompts", str(benchmark.prompts), "--max-concurrency", str(benchmark.concurrency)),
        *("--random-input-len", str(benchmark.input_tokens), "--random-output-len", str(benchmark.output_tokens)),
        *("--seed", str(ordinal)),  # the same prompts again would be answered from the prefix cache
        *("--save-result", "--result-dir", _FOLDER, "--result-filename", f"{ordinal}.json"),
    )


def _tokenizer_mode(profile: Profile) -> tuple[str, ...]:
    return next((flag.arguments for flag in profile.flags if flag.name == "--tokenizer-mode"), ())


def read_pass(raw: bytes, *, asked: int, warm_up: bool, at: datetime) -> Pass:
    """The numbers of one pass.

    Raises:
        Unreadable: It is not what the tool writes.
    """
    try:
        document: Any = json.loads(raw)
        return Pass(
            asked=asked,
            completed=int(document["completed"]),
            tpot_ms=float(document["mean_tpot_ms"]),
            ttft_ms=float(document["mean_ttft_ms"]),
            throughput=float(document["output_throughput"]),
            warm_up=warm_up,
            at=at,
            raw=document,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"The benchmark's result cannot be understood: {error!r}") from error


def is_settled(passes: Sequence[Pass], benchmark: Benchmark) -> bool:
    """Whether there are warm passes enough: they agree, or more of them are not wanted."""
    warm = [each.tpot_ms for each in passes if each.counts]
    if len(warm) < benchmark.passes:
        return False
    return len(warm) >= benchmark.most_passes or spread(warm) <= benchmark.settled
