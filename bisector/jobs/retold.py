"""``report``: a night told again, from the history alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from bisector.errors import BisectorError
from bisector.jobs.find import find
from bisector.jobs.nightly import change_request, not_measured
from bisector.jobs.probe import Probe
from bisector.jobs.resolve import EVERYTHING, Resolve
from bisector.jobs.standing import Watch, standing
from bisector.model import Cost, RunState
from bisector.ports import Journal, Records
from bisector.results import Filters, HarvestedSource, News, NewsKind, Night, Stage, StreamNight, Subject


async def retell(
    watches: Sequence[Watch], *, resolve: Resolve, probe: Probe, records: Records, journal: Journal
) -> Night:
    """How everything stands by what is known now, with the news and the work of the last night.

    Nothing is listed and nothing read: the searches of that night are made again in what they left in the history.
    """
    told = await _last_night(records, journal)
    offline = replace(probe, offline=True)
    streams: list[StreamNight] = []
    searched: list[News] = []
    kept = {news.key: news for news in _news(told)}
    for watch in watches:
        source = resolve.streams(watch.source, EVERYTHING, watch.platform).source
        here = resolve.on(watch.platform)
        harvested = HarvestedSource(source=source, platform=watch.platform)
        stream = await standing(watch, harvested, catalogue=here.catalogue, probe=offline)
        streams.append(stream)
        own = [kept.pop(key) for key in tuple(kept) if f":{source}:{watch.platform}:" in key]
        searched += [await _searched(news, watch, stream, resolve=here, probe=offline) for news in own]
    at = told.get("at")
    return Night(
        at=datetime.fromisoformat(at) if isinstance(at, str) else probe.clock.now(),
        streams=tuple(streams),
        news=(*searched, *kept.values()),
        stages=tuple(_stages(told)),
        not_measured=tuple(not_measured(streams, booted=any(watch.bench for watch in watches))),
        cost=Cost(),
    )


async def _last_night(records: Records, journal: Journal) -> Mapping[str, Any]:
    """What the last night that came to its end left in the journal."""
    runs = await records.table(Subject.RUNS, Filters())
    names = ("run", "command", "state")
    columns = [runs.columns.index(name) for name in names]
    for row in runs.rows:
        run, command, state = (row[column] for column in columns)
        if command == "nightly" and state == RunState.FINISHED:
            return (await journal.run(str(run))).result or {}
    return {}


async def _searched(news: News, watch: Watch, stream: StreamNight, *, resolve: Resolve, probe: Probe) -> News:
    request = change_request(news, watch, stream)
    if request is None:
        return news
    request = replace(request, source=f"history:{stream.source}", commits=False)
    try:
        return replace(news, finding=await find(request, resolve=resolve, probe=probe))
    except BisectorError:
        # The sentence stands by itself; what it rested on is no longer in this history.
        return news


def _news(told: Mapping[str, Any]) -> list[News]:
    return [
        News(
            kind=NewsKind(one["kind"]),
            key=one["key"],
            source=one["source"],
            arch=one["arch"],
            sentence=one["sentence"],
        )
        for one in told.get("news", ())
    ]


def _stages(told: Mapping[str, Any]) -> list[Stage]:
    return [Stage(name=one["name"], ok=one["ok"], says=one["says"]) for one in told.get("stages", ())]
