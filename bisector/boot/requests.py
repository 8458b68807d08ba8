"""The requests a server must answer, and whether it did. Pure."""

from __future__ import annotations

import json
from typing import Any, Final

from bisector.boot.ports import Reply
from bisector.boot.profile import Heaviest, Profile

CHAT: Final = "/v1/chat/completions"
COMPLETIONS: Final = "/v1/completions"
HEALTH: Final = "/health"

_FIRST_TOKEN, _TOKENS = 100, 900  # past the special ones, and within any vocabulary


def smoke(profile: Profile) -> bytes:
    """A first, short request: a server can be healthy and fail it."""
    return _json(
        {
            "model": profile.served_name,
            "messages": [{"role": "user", "content": "Say hello."}],
            "max_tokens": 8,
            "temperature": 0,
        }
    )


def heavy(profile: Profile, heaviest: Heaviest) -> bytes:
    """A request of exactly so many tokens: given by number, so that no tokenizer has a say."""
    return _json(
        {
            "model": profile.served_name,
            "prompt": [_FIRST_TOKEN + (at * 7919) % _TOKENS for at in range(heaviest.prompt_tokens)],
            "max_tokens": heaviest.output_tokens,
            "ignore_eos": True,
            "temperature": 0,
        }
    )


def usage(reply: Reply) -> tuple[int, int] | None:
    """Tokens of the prompt and of the answer, as the server counted them; ``None`` where it did not answer."""
    try:
        document: Any = json.loads(reply.body)
        if reply.status != 200 or not document["choices"]:  # noqa: PLR2004 - HTTP's "OK"
            return None
        return int(document["usage"]["prompt_tokens"]), int(document["usage"]["completion_tokens"])
    except (ValueError, KeyError, TypeError):
        return None


def refusal(reply: Reply) -> str:
    """What the server said instead of an answer, in one line."""
    if reply.status == 0:
        return "nobody answered"
    text = " ".join(reply.body.decode(errors="replace").split())[:300]
    return f"status {reply.status} {text}".strip()


def _json(document: dict[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
