from __future__ import annotations

import gzip
import hashlib
import io
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import stamina

from bisector.errors import ConfigError, RangesUnsupported, RateLimited, Unavailable, Unreadable
from bisector.http import Http, Patience, Traffic, host_of, redacted
from bisector.http.failures import Again, translated
from tests.fakes.index import Cut, Index, Redirect, Refuse, Reply, serving

QUICK = Patience(first_wait=0.001, longest_wait=0.01, jitter=0.001)
CONTENT = bytes(range(256)) * 1024


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as index:
        yield index


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    async with Http(patience=QUICK) as http:
        yield http


@pytest.fixture
def url(index: Index) -> str:
    return index.add("f-1-py3-none-any.whl", CONTENT)


# --- whole answers ---------------------------------------------------------------------------------------------------


async def test_an_answer_is_read_whole_and_counted(index: Index, url: str) -> None:
    traffic = Traffic()
    async with Http(meter=traffic, patience=QUICK) as http:
        reply = await http.get(url, limit=len(CONTENT))
    assert (reply.status, reply.body, reply.url) == (200, CONTENT, url)
    assert (traffic.requests, traffic.bytes) == (1, len(CONTENT))
    assert index.seen[0].headers["user-agent"].startswith("bisector/")


async def test_an_answer_over_the_limit_is_not_read_to_its_end(http: Http, url: str) -> None:
    with pytest.raises(Unreadable, match="longer than the 1,000 bytes"):
        await http.get(url, limit=1000)


async def test_the_limit_holds_for_what_an_answer_inflates_to(index: Index, http: Http) -> None:
    index.trouble.append(Reply(status=200, body=gzip.compress(bytes(1 << 20)), headers={"Content-Encoding": "gzip"}))
    with pytest.raises(Unreadable, match="longer than"):
        await http.get(index.url, limit=1 << 16)


async def test_not_found_is_for_the_caller_to_judge(index: Index, http: Http) -> None:
    assert (await http.get(f"{index.url}/nothing/", limit=100)).status == 404
    assert len(index.seen) == 1


# --- trying again ----------------------------------------------------------------------------------------------------


async def test_a_server_error_that_passes_is_not_noticed(index: Index, http: Http, url: str) -> None:
    index.trouble.extend([Refuse(status=500), Refuse(status=502)])
    assert (await http.get(url, limit=1 << 20)).body == CONTENT
    assert http.meter.requests == 3


async def test_a_server_error_that_stays_is_unavailable_after_four_attempts(index: Index, http: Http, url: str) -> None:
    index.trouble.extend([Refuse(status=503)] * 9)
    with pytest.raises(Unavailable, match=f"^127.0.0.1:{index.port} answered 503") as caught:
        await http.get(url, limit=1 << 20)
    assert type(caught.value) is Unavailable
    assert len(index.seen) == 4


async def test_retry_after_is_honoured(index: Index, url: str) -> None:
    index.trouble.append(Refuse(status=429, headers={"Retry-After": "0"}))
    # Without the header this patience would wait for an hour.
    async with Http(patience=Patience(first_wait=3600, longest_wait=3600)) as http:
        assert (await http.get(url, limit=1 << 20)).body == CONTENT


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Retry-After": "3600"}, r"asks to wait until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"),
        (
            {"Retry-After": "Sun, 29 Nov 2026 13:00:00 GMT", "Date": "Sun, 29 Nov 2026 12:00:00 GMT"},
            "asks to wait until 2026-11-29 13:00:00 UTC",
        ),
    ],
)
async def test_a_long_wait_is_told_and_not_waited_for(
    index: Index, http: Http, url: str, headers: dict[str, str], words: str
) -> None:
    index.trouble.append(Reply(status=429, body=b"", headers=headers))
    with pytest.raises(RateLimited, match=words):
        await http.get(url, limit=1 << 20)
    assert len(index.seen) == 1


async def test_too_many_requests_without_a_time_is_rate_limited_in_the_end(index: Index, http: Http, url: str) -> None:
    index.trouble.extend([Refuse(status=429, headers={"Retry-After": "soon"})] * 4)
    with pytest.raises(RateLimited, match="too many requests"):
        await http.get(url, limit=1 << 20)
    assert len(index.seen) == 4


async def test_an_answer_that_breaks_off_is_asked_for_again(index: Index, http: Http, url: str) -> None:
    index.trouble.append(Cut(after=1000))
    assert (await http.get(url, limit=1 << 20)).body == CONTENT


async def test_nobody_there(http: Http) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"^127.0.0.1:{port} cannot be reached"):
            await http.get(f"http://127.0.0.1:{port}/", limit=1)
    assert http.meter.requests == 4


async def test_a_server_that_never_ends_is_too_slow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        impatient = Patience(attempts=2, first_wait=0.001, jitter=0.0, longest_answer=0.05)
        async with Http(patience=impatient) as http:
            with pytest.raises(Unavailable, match="too slow"):
                await http.get(f"http://127.0.0.1:{silent.getsockname()[1]}/", limit=1)


async def test_trying_again_prints_nothing(
    index: Index, http: Http, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    index.trouble.append(Refuse(status=500))
    await http.get(url, limit=1 << 20)
    # Without this, stamina would use structlog where it is installed, and that writes to stdout.
    assert stamina.instrumentation.get_on_retry_hooks() == ()
    assert capfd.readouterr() == ("", "")


# --- parts of files --------------------------------------------------------------------------------------------------


async def test_a_part_is_exactly_that_part(index: Index, http: Http, url: str) -> None:
    assert await http.get_range(url, 1000, 1999) == CONTENT[1000:2000]
    assert index.asked_ranges() == ["bytes=1000-1999"]
    assert http.meter.bytes == 1000


async def test_a_part_that_breaks_off_is_taken_up_where_it_stopped(index: Index, http: Http, url: str) -> None:
    index.trouble.extend([Cut(after=300), Cut(after=200)])
    assert await http.get_range(url, 1000, 1999) == CONTENT[1000:2000]
    assert index.asked_ranges() == ["bytes=1000-1999", "bytes=1300-1999", "bytes=1500-1999"]


async def test_a_part_shorter_than_announced_by_the_server_itself(index: Index, http: Http, url: str) -> None:
    short = {"Content-Range": f"bytes 0-99/{len(CONTENT)}"}
    index.trouble.append(Reply(status=206, body=CONTENT[:40], headers=short))
    assert await http.get_range(url, 0, 99) == CONTENT[:100]
    assert index.asked_ranges() == ["bytes=0-99", "bytes=40-99"]


@pytest.mark.parametrize("content_range", ["bytes 1-99/500", "bytes 0-98/500", "bytes x", "lines 0-99/500"])
async def test_another_part_than_asked_for_is_refused(index: Index, http: Http, url: str, content_range: str) -> None:
    index.trouble.append(Reply(status=206, body=bytes(100), headers={"Content-Range": content_range}))
    with pytest.raises(Unreadable):
        await http.get_range(url, 0, 99)


async def test_a_part_beyond_the_end_is_unreadable(http: Http, url: str) -> None:
    with pytest.raises(Unreadable, match="shorter than expected"):
        await http.get_range(url, len(CONTENT) + 1, len(CONTENT) + 5)


async def test_the_end_of_a_file_comes_with_its_size(index: Index, http: Http, url: str) -> None:
    assert await http.get_suffix(url, 500) == (CONTENT[-500:], len(CONTENT))
    assert index.asked_ranges() == ["bytes=-500"]


async def test_the_end_of_a_file_that_breaks_off_is_asked_for_again(index: Index, http: Http, url: str) -> None:
    index.trouble.append(Cut(after=100))
    assert await http.get_suffix(url, 500) == (CONTENT[-500:], len(CONTENT))


async def test_the_end_of_a_short_file_is_all_of_it(index: Index, http: Http, url: str) -> None:
    assert await http.get_suffix(url, len(CONTENT) * 2) == (CONTENT, len(CONTENT))
    index.ranges = False
    assert await http.get_suffix(url, len(CONTENT) * 2) == (CONTENT, len(CONTENT))


async def test_a_server_without_suffixes_is_asked_by_position(index: Index, http: Http, url: str) -> None:
    index.suffixes = False
    assert await http.get_suffix(url, 500) == (CONTENT[-500:], len(CONTENT))


async def test_a_server_without_ranges_is_told_by_name_and_size_and_not_read(index: Index, http: Http) -> None:
    index.ranges = False
    url = index.add("large-1-py3-none-any.whl", bytes(64 << 20))
    with pytest.raises(RangesUnsupported, match=rf"^127.0.0.1:{index.port} gives only whole files") as caught:
        await http.get_suffix(url, 1000)
    assert "(67.1 MB)" in caught.value.hint
    with pytest.raises(RangesUnsupported):
        await http.get_range(url, 0, 1000)
    assert http.meter.bytes < 1 << 20


async def test_parts_of_one_file_share_a_connection(index: Index, http: Http, url: str) -> None:
    for start in range(0, 5000, 1000):
        await http.get_range(url, start, start + 10)
    assert len({seen.client for seen in index.seen}) == 1


async def test_a_refused_part_is_unavailable(http: Http, index: Index) -> None:
    with pytest.raises(Unavailable, match="answered 404"):
        await http.get_range(index.file_url("gone.whl"), 0, 9)
    with pytest.raises(Unavailable, match="answered 404"):
        await http.get_suffix(index.file_url("gone.whl"), 9)


# --- whole files -----------------------------------------------------------------------------------------------------


async def test_a_download_starts_over_when_it_breaks_off(index: Index, http: Http, url: str) -> None:
    index.trouble.append(Cut(after=100_000))
    file = io.BytesIO()
    digest = await http.download(url, file, limit=len(CONTENT))
    assert file.getvalue() == CONTENT
    assert digest == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


async def test_a_download_is_bounded(http: Http, url: str) -> None:
    with pytest.raises(Unreadable, match="longer than"):
        await http.download(url, io.BytesIO(), limit=len(CONTENT) - 1)


# --- redirects and credentials ---------------------------------------------------------------------------------------


async def test_a_login_in_the_address_is_used_and_nowhere_shown(index: Index, http: Http, url: str) -> None:
    index.login = "user:s3cret"
    reply = await http.get(url.replace("//", "//user:s3cret@"), limit=1 << 20)
    assert (reply.status, reply.url) == (200, url)
    # What the index links to lies on the same host and needs the same login.
    assert await http.get_range(url, 0, 9) == CONTENT[:10]


async def test_a_login_does_not_follow_to_another_host(index: Index, http: Http, url: str) -> None:
    with serving() as other:
        other.add("f-1-py3-none-any.whl", CONTENT)
        index.trouble.append(Redirect(to=other.file_url("f-1-py3-none-any.whl")))
        reply = await http.get(url.replace("//", "//user:s3cret@"), limit=1 << 20)
    assert reply.url.startswith(f"http://127.0.0.1:{other.port}/")
    assert "authorization" in index.seen[0].headers
    assert "authorization" not in other.seen[0].headers


async def test_an_authorization_header_does_not_follow_to_another_host(index: Index, http: Http, url: str) -> None:
    with serving() as other:
        other.add("f-1-py3-none-any.whl", CONTENT)
        index.trouble.append(Redirect(to=other.file_url("f-1-py3-none-any.whl")))
        await http.get(url, headers={"Authorization": "Bearer s3cret"}, limit=1 << 20)
    assert index.seen[0].headers["authorization"] == "Bearer s3cret"
    assert "authorization" not in other.seen[0].headers


async def test_a_part_is_followed_to_where_the_file_moved(index: Index, http: Http, url: str) -> None:
    index.trouble.append(Redirect(to="/files/f-1-py3-none-any.whl", body=64 << 20))
    assert await http.get_range(url, 5, 9) == CONTENT[5:10]
    assert http.meter.bytes == 5


async def test_redirects_end(index: Index, http: Http, url: str) -> None:
    index.trouble.extend([Redirect(to=url)] * 50)
    with pytest.raises(Unavailable, match="redirects without end"):
        await http.get(url, limit=1)
    assert len(index.seen) == 10


@pytest.mark.parametrize("status", [401, 403, 404, 503])
async def test_no_message_shows_a_login(index: Index, http: Http, url: str, status: int) -> None:
    index.trouble.extend([Refuse(status=status)] * 4)
    with pytest.raises(Unavailable) as caught:
        await http.get_range(url.replace("//", "//user:s3cret@") + "?token=s3cret", 0, 9)
    assert "s3cret" not in str(caught.value) + caught.value.hint
    assert "user" not in str(caught.value)


def test_addresses_are_named_without_their_secrets() -> None:
    address = "https://user:s3cret@example.org:8443/simple/vllm/?token=s3cret#sha256=1"
    assert redacted(address) == "https://example.org:8443/simple/vllm/"
    assert host_of(address) == "example.org:8443"
    assert "s3cret" not in redacted("https://user:s3cret@host:x/") + host_of("https://user:s3cret@host:x/")


# --- failures --------------------------------------------------------------------------------------------------------


def kinds(kind: type[Exception]) -> Iterator[type[Exception]]:
    below = kind.__subclasses__()
    if not below:
        yield kind
    for one in below:
        yield from kinds(one)


def made(kind: type[Exception]) -> Exception:
    return kind("what httpx says")


# It comes from Response.raise_for_status alone, which bisector does not call.
RAISED_BY_HTTPX = sorted(set(kinds(httpx.HTTPError)) - {httpx.HTTPStatusError}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", RAISED_BY_HTTPX)
def test_everything_httpx_raises_is_told_in_words_of_its_own(kind: type[Exception]) -> None:
    with pytest.raises((Unavailable, Again)) as caught, translated("https://user:s3cret@example.org/x"):
        raise made(kind)
    error = caught.value.error if isinstance(caught.value, Again) else caught.value
    assert type(error) is Unavailable
    assert "example.org" in error.message
    assert "could not be asked" not in error.message


def test_a_certificate_that_is_not_trusted_is_told_once_with_what_to_do() -> None:
    with pytest.raises(Unavailable) as caught, translated("https://example.org/"):
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate")
    assert "SSL_CERT_FILE" in caught.value.hint


@pytest.mark.parametrize("address", ["ftp://example.org/x", "/simple/vllm", "http://example.org:x"])
async def test_what_is_no_web_address_is_refused_at_once(http: Http, address: str) -> None:
    with pytest.raises(Unavailable):
        await http.get(address, limit=1)
    assert http.meter.requests <= 1


async def test_certificates_that_cannot_be_read_are_a_mistake_in_the_configuration(url: str) -> None:
    async with Http(ca_file="no/such/file.pem") as http:
        with pytest.raises(ConfigError, match=r"no/such/file\.pem"):
            await http.get(url, limit=1)


async def test_other_certificates_are_trusted_from_the_next_request_on(index: Index, tmp_path: Path) -> None:
    url = index.add("a.txt", b"content")
    async with Http() as http:
        assert (await http.get(url, limit=100)).body == b"content"
        http.trust(str(tmp_path / "no-such-file.pem"))
        with pytest.raises(ConfigError, match=r"no-such-file\.pem"):
            await http.get(url, limit=100)
