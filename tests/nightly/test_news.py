"""What is news, decided without any network; and how it is said when its names are hostile."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import msgspec

from bisector.jobs.news import news_of
from bisector.model import Answer, Build, Cost, Digest, Loss, Platform, Verdict
from bisector.report.posting.apprise import AppriseReceiver
from bisector.report.posting.issue import IssuePost, Step, issue_drafts
from bisector.report.posting.message import harmless, message
from bisector.results import ArchNight, HarvestedSource, News, NewsKind, Night, StreamNight, TimelineEntry
from bisector.search.losses import visible_losses

BEGIN = datetime(2026, 7, 1, 9, tzinfo=UTC)
AMD64 = Platform("linux/amd64")
ANSWERS = {"+": Answer.GOOD, "-": Answer.BAD, "?": Answer.UNTESTABLE, ".": None}


def stream(answers: str, *, names: str = "abcdefghijklmnop", source: str = "registry:host/repo") -> StreamNight:
    """A stream of a build a day: ``+`` has the kernels, ``-`` has not, ``?`` cannot tell, ``.`` is still to be read."""
    builds = [
        Build(
            id=name,
            source=source,
            spec=f"{source}:{name}",
            platform=AMD64,
            location=None,
            digest=Digest(f"sha256:{number:064x}"),
            published_at=BEGIN + timedelta(days=number),
            pin=f"host/repo@sha256:{number:064x}",
        )
        for number, name in zip(range(len(answers)), names, strict=False)
    ]
    told = [(build, ANSWERS[sign]) for build, sign in zip(builds, answers, strict=True)]
    losses: tuple[Loss, ...] = visible_losses((build.id, answer) for build, answer in told)
    good = [build for build, answer in told if answer is Answer.GOOD]
    tested = [(build, answer) for build, answer in told if answer in {Answer.GOOD, Answer.BAD}]
    newest, last = tested[-1] if tested else (None, Answer.UNTESTABLE)
    arch = ArchNight(
        arch="sm120",
        verdict=Verdict(answer=last or Answer.UNTESTABLE),
        newest=newest,
        pin=good[-1] if good else None,
        losses=losses,
    )
    return StreamNight(
        source=source,
        platform=AMD64,
        entries=tuple(TimelineEntry(build=build) for build in builds),
        archs=(arch,),
        newest_at=builds[-1].published_at if builds else None,
        harvest=HarvestedSource(source=source, platform=AMD64),
    )


def told(answers: str, known: Collection[str] = (), *, days: float = 0.5) -> list[str]:
    """The kinds and builds of the news, ``days`` after the newest build."""
    seen = stream(answers)
    now = (seen.newest_at or BEGIN) + timedelta(days=days)
    return [short(news) for news in news_of(seen, known, now=now, stopped_after=timedelta(days=3))]


def short(news: News) -> str:
    return f"{news.kind} {news.key.rpartition(':')[2]}"


def key(kind: str, build: str) -> str:
    arch = "" if kind in {"stopped", "resumed"} else "sm120:"
    return f"{kind}:registry:host/repo:linux/amd64:{arch}{build}"


def test_a_loss_is_told_while_it_lasts_and_once() -> None:
    assert told("++") == []
    assert told("++-") == ["lost c"]
    assert told("++---", {key("lost", "c")}) == []


def test_its_end_is_told_to_who_was_told_of_it() -> None:
    assert told("++-+") == []
    assert told("++-+", {key("lost", "c")}) == ["regained d"]
    assert told("++-++", {key("lost", "c"), key("regained", "d")}) == []


def test_a_second_loss_is_news_again() -> None:
    known = {key("lost", "c"), key("regained", "d")}
    assert told("++-+-", known) == ["lost e"]
    assert told("++-+-+", {*known, key("lost", "e")}) == ["regained f"]


def test_a_loss_whose_first_build_turns_out_to_be_another_is_the_same() -> None:
    assert told("+?-") == ["lost c"]
    assert told("+--", {key("lost", "c")}) == []
    assert told("+?--", {key("lost", "d")}) == []


def test_a_change_across_a_build_that_is_still_to_be_read_waits() -> None:
    assert told("+.-") == []


def test_an_end_that_is_found_earlier_is_not_told_again() -> None:
    known = {key("lost", "b"), key("regained", "d")}
    assert told("+-++", known) == []
    assert told("+--+", known) == []


def test_a_stream_stops_once_and_goes_on_once() -> None:
    assert told("++", days=3) == ["stopped b"]
    assert told("++", {key("stopped", "b")}, days=9) == []
    assert told("+++", {key("stopped", "b")}) == ["resumed c"]
    assert told("+++", {key("stopped", "b"), key("resumed", "c")}) == []
    assert told("+++", {key("stopped", "b"), key("resumed", "c")}, days=4) == ["stopped c"]
    assert told("") == []


HOSTILE = "<!channel>@everyone](http://evil)\x1b[2J**`x`\r\n"


def night(seen: StreamNight) -> Night:
    now = (seen.newest_at or BEGIN) + timedelta(days=0.5)
    news = news_of(seen, (), now=now, stopped_after=timedelta(days=3))
    return Night(at=now, streams=(seen,), news=news, stages=(), not_measured=(), cost=Cost())


def test_hostile_names_are_harmless_in_a_message() -> None:
    seen = stream("+-", names=["good", HOSTILE])  # type: ignore[arg-type] # any series of texts
    (news,) = night(seen).news
    told = message(night(seen), [news])
    assert news.kind is NewsKind.LOST
    for mark in ("<!channel>", "<", ">", "](", "\x1b", "\r", " @everyone"):
        assert mark not in told.replace("@\u2060everyone", "")
    assert told.count("\n\n") == 1
    assert "host/repo@sha256:" in told  # a pin stays one that can be pasted
    assert harmless("mail a@b.example, @here") == "mail a@b.example, @\u2060here"


def test_hostile_names_are_harmless_in_an_issue() -> None:
    seen = stream("+-", names=["good", HOSTILE])  # type: ignore[arg-type] # any series of texts
    opened, edited = issue_drafts(night(seen), ())
    post = msgspec.json.decode(opened.body, type=IssuePost)
    assert (post.step, msgspec.json.decode(edited.body, type=IssuePost).step) == (Step.OPEN, Step.EDIT)
    assert "\x1b" not in post.title + post.now + post.evidence
    assert post.now.count("<!--") == 0


def test_a_receiver_is_told_only_what_it_does_not_know() -> None:
    receiver = AppriseReceiver("team", lambda: "json://127.0.0.1")
    seen = night(stream("++-"))
    (draft,) = receiver.drafts(seen, (), always=False)
    assert draft.says.startswith("sm120: lost in c (07-03); pin host/repo@sha256:")
    assert receiver.drafts(seen, {draft.key}, always=False) == ()
    (more,) = receiver.drafts(seen, {draft.key}, always=True)
    assert more.key == "night:2026-07-03"
    assert receiver.drafts(seen, {draft.key, more.key}, always=True) == ()
