from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from bisector.artifacts.image.authority import parse_challenge
from bisector.artifacts.image.credentials import DockerCredentials
from bisector.artifacts.image.reference import is_loopback, parse_reference, registry_base
from bisector.errors import UnknownBuild, Unreadable

SHA = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "host", "repository", "tag", "digest"),
    [
        ("vllm/vllm-openai:nightly", "docker.io", "vllm/vllm-openai", "nightly", None),
        ("vllm/vllm-openai", "docker.io", "vllm/vllm-openai", "latest", None),
        ("ubuntu", "docker.io", "library/ubuntu", "latest", None),
        ("docker.io/ubuntu:24.04", "docker.io", "library/ubuntu", "24.04", None),
        ("index.docker.io/vllm/vllm-openai:x", "docker.io", "vllm/vllm-openai", "x", None),
        ("registry-1.docker.io/vllm/vllm-openai:x", "docker.io", "vllm/vllm-openai", "x", None),
        ("127.0.0.1:5000/repo", "127.0.0.1:5000", "repo", "latest", None),
        (f"127.0.0.1:5000/a/b@{SHA}", "127.0.0.1:5000", "a/b", None, SHA),
        (f"localhost/a:tag@{SHA}", "localhost", "a", "tag", SHA),
        ("public.ecr.aws/q9t5s3a7/vllm-release-repo:x", "public.ecr.aws", "q9t5s3a7/vllm-release-repo", "x", None),
        ("docker://ghcr.io/a/b:c", "ghcr.io", "a/b", "c", None),
    ],
)
def test_references_mean_what_docker_means(
    text: str, host: str, repository: str, tag: str | None, digest: str | None
) -> None:
    found = parse_reference(text)
    assert (found.host, found.repository, found.tag, found.digest) == (host, repository, tag, digest)
    again = parse_reference(str(found))
    assert (again.host, again.repository, again.digest) == (host, repository, digest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "@",
        "a@sha256:short",
        "UPPER/case",
        "a/../b",
        "a//b",
        "https://x/y",
        "a:b c",
        "a:" + "t" * 129,
        "a b/c",
        "-/a",
        "-x.io/a",
        "x.io-/a",
    ],
)
def test_what_names_no_image_is_refused(text: str) -> None:
    with pytest.raises(UnknownBuild):
        parse_reference(text)


def test_only_this_machine_is_spoken_to_in_the_clear() -> None:
    assert registry_base("docker.io") == "https://registry-1.docker.io"
    assert registry_base("localhost:5000") == "http://localhost:5000"
    assert registry_base("127.8.0.1") == "http://127.8.0.1"
    assert registry_base("[::1]:5000") == "http://[::1]:5000"
    assert registry_base("localhost.example") == "https://localhost.example"
    assert registry_base("10.0.0.1:5000") == "https://10.0.0.1:5000"
    assert not is_loopback("127.0.0.1.example")


@pytest.mark.parametrize(
    ("header", "service", "scope"),
    [
        (
            'Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a:pull"',
            True,
            True,
        ),
        ('bearer scope="aws", service="public.ecr.aws", realm="https://public.ecr.aws/token/"', True, True),
        ('Bearer realm="https://nvcr.io/proxy_auth",scope="repository:a:pull"', False, True),
        ('Basic realm="x", Bearer realm="https://a/token",service="a"', True, False),
    ],
)
def test_challenges_are_understood(header: str, service: bool, scope: bool) -> None:  # noqa: FBT001
    found = parse_challenge(header)
    assert (found.scheme, bool(found.service), bool(found.scope)) == ("bearer", service, scope)
    assert found.realm.startswith("https://")


def test_other_challenges_are_not() -> None:
    assert parse_challenge('Basic realm="x"').scheme == "basic"
    for header in ("", "Digest x", "Negotiate", "Bearer"):
        with pytest.raises(Unreadable):
            parse_challenge(header)


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


async def test_a_helper_is_asked(docker_config: Path) -> None:
    helper = docker_config / "docker-credential-fake"
    helper.write_text('#!/bin/sh\necho \'{"ServerURL": "x", "Username": "user", "Secret": "pass"}\'\n')
    helper.chmod(helper.stat().st_mode | stat.S_IXUSR)
    (docker_config / "config.json").write_text(json.dumps({"credHelpers": {"ghcr.io": "fake"}}))
    login = await DockerCredentials().login("ghcr.io")
    assert login is not None
    assert (login.username, login.password) == ("user", "pass")
    assert "pass" not in repr(login)
    assert await DockerCredentials().login("quay.io") is None


async def test_docker_hub_is_found_under_its_old_name(docker_config: Path) -> None:
    auths = {"https://index.docker.io/v1/": {"auth": "dXNlcjpwYXNz"}}
    (docker_config / "config.json").write_text(json.dumps({"auths": auths}))
    login = await DockerCredentials().login("docker.io")
    assert login is not None
    assert (login.username, login.password) == ("user", "pass")


@pytest.mark.filterwarnings("ignore:docker-credential-missing not installed")
@pytest.mark.parametrize("config", ['{"credsStore": "missing"}', "no json", '{"auths": []}', '{"auths": {"x": 3}}'])
async def test_a_broken_configuration_is_like_none(docker_config: Path, config: str) -> None:
    (docker_config / "config.json").write_text(config)
    assert await DockerCredentials().login("ghcr.io") is None
