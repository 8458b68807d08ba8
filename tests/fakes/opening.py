"""The real opener, with registries and a wheel index that nobody is asked."""

from __future__ import annotations

from bisector.artifacts.commit_wheel import CommitWheels
from bisector.artifacts.image.credentials import Anonymous
from bisector.artifacts.image.memory import RecentLayers
from bisector.artifacts.image.registries import Registries
from bisector.artifacts.opener import Opener
from bisector.http import Http

NOWHERE = "http://127.0.0.1:9"


def opener(http: Http, *, wheels: str = NOWHERE, allow_full_download: bool = False) -> Opener:
    memory = RecentLayers()
    return Opener(
        http,
        wheels=CommitWheels(http, base=wheels),
        registries=Registries(http, credentials=Anonymous(), bases={}, memory=memory),
        memory=memory,
        allow_full_download=allow_full_download,
    )
