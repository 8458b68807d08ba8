"""A request that changes something is made once, whatever comes of it."""

from __future__ import annotations

import pytest

from bisector.errors import Unavailable, Unreadable
from bisector.http import Http
from tests.lab.website import Answer, Website


async def test_the_body_goes_out_and_the_answer_comes_back() -> None:
    with Website(lambda request: Answer(status=201, body=request.method.encode() + b" " + request.body)) as site:
        async with Http() as http:
            reply = await http.send("PATCH", f"{site.url}/x", body=b"{}", headers={"X-Own": "1"}, limit=100)
    assert (reply.status, reply.body) == (201, b"PATCH {}")
    assert site.requests[0].headers["x-own"] == "1"


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_may_have_been_carried_out_is_not_tried_again(status: int) -> None:
    with Website(lambda _: Answer(status=status)) as site:
        async with Http() as http:
            with pytest.raises(Unavailable):
                await http.send("POST", f"{site.url}/x?secret=1", body=b"", limit=100)
    assert len(site.requests) == 1


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with Website(lambda _: Answer(body=b"x" * 1000)) as site:
        async with Http() as http:
            with pytest.raises(Unreadable, match="longer than the 100 bytes"):
                await http.send("POST", f"{site.url}/x", body=b"", limit=100)
