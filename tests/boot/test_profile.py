from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bisector.boot.profile import Profile
from bisector.boot.profiles import find_profile, parse_profile, read_profile
from bisector.errors import ConfigError

LEAST: dict[str, Any] = {"title": "t", "arch": "sm120", "model": "/m", "context": {"tokens": 32768}}


def parsed(**more: Any) -> Profile:
    return parse_profile({**LEAST, **more}, name="p", where="p.toml")


def test_the_shipped_profile_is_that_of_the_issue() -> None:
    profile = find_profile("deepseek-v4-flash-nvfp4")
    assert profile.arguments(250_000) == (
        *("/models/DeepSeek-V4-Flash-NVFP4", "--max-model-len", "250000"),
        *("--tensor-parallel-size", "2", "--max-num-seqs", "8", "--max-num-batched-tokens", "4096"),
        *("--gpu-memory-utilization", "0.97", "--kv-cache-dtype", "fp8", "--block-size", "256"),
        *("--tokenizer-mode", "deepseek_v4", "--tool-call-parser", "deepseek_v4", "--enable-auto-tool-choice"),
    )
    assert profile.context.tokens == 250_000
    assert profile.gpus is not None
    assert (profile.gpus.count, profile.gpus.arch) == (2, "sm120")
    assert profile.heaviest is not None
    assert profile.heaviest.prompt_tokens == 130_000
    assert profile.served_name == profile.model
    assert all(flag.why for flag in profile.flags if flag.remove_when)


def test_a_served_name_is_what_requests_use() -> None:
    assert parsed(flag=[{"name": "--served-model-name", "value": "tiny"}]).served_name == "tiny"


@pytest.mark.parametrize(
    ("more", "message", "hint"),
    [
        ({"contxt": {}}, "Unknown key 'contxt' in p.toml", "'context'"),
        ({"context": {"tokns": 1}}, "Unknown key [context] 'tokns' in p.toml", "'tokens'"),
        ({"flag": [{"name": "--a", "remove-wen": ""}]}, "Unknown key [[flag]] 'remove-wen' in p.toml", "'remove-when'"),
        ({"name": "x"}, "Unknown key 'name' in p.toml", "Known here"),
        ({"context": {"tokens": 0}}, "p.toml: Expected `int` >= 1", ""),
        ({"flag": [{"name": "max"}]}, "p.toml: Expected `str` matching", ""),
        ({"flag": [{"name": "--max-model-len", "value": 8}]}, "--max-model-len is what the ladder sets", "[context]"),
        ({"limits": {"shm": "1 gig"}}, "p.toml: Expected `str` matching", ""),
        ({"mount": [{"host": "models", "container": "/m"}]}, "p.toml: Expected `str` matching", ""),
        ({"heaviest": {"prompt-tokens": 32768}}, "the heaviest request is longer than the context", ""),
        ({"benchmark": {"passes": 2}}, "p.toml: Expected `int` >= 3", ""),
    ],
)
def test_what_does_not_belong_is_refused_by_name(more: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(**more)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_profile_is_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('title = "t"\narch = "sm120"\nmodel = "/m"\n[context]\ntokens = 1\n')
    assert find_profile(str(file)).name == "mine"


@pytest.mark.parametrize("content", [b"title = ", b"\xff\xfe"])
def test_what_is_no_toml_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="is not TOML"):
        read_profile(file)


def test_a_misspelled_shipped_profile_is_guessed() -> None:
    with pytest.raises(ConfigError) as refused:
        find_profile("deepseek-v4-flash-nvpf4")
    assert "deepseek-v4-flash-nvfp4" in refused.value.hint
