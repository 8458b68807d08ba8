"""Docker Hub's tags API: https://docs.docker.com/reference/api/hub/latest/#tag/repositories."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlencode

from .scenario import Tag
from .website import Answer, Request, Website, as_json

_PATH: Final = re.compile(r"/v2/(?:namespaces/([^/]+)/repositories/([^/]+)|repositories/([^/]+)/([^/]+))/tags/?")
_MOST: Final = 100  # tags a page
_PER_MINUTE: Final = 180


class TagsApi:
    """Lists the tags of one repository, in no useful order unless asked."""

    def __init__(self, repository: str, tags: Callable[[], Sequence[Tag]]) -> None:
        self._repository = repository
        self._tags = tags
        self._minute = (0, 0)  # the present one, and the requests in it
        self.site = Website(self._answer)

    def _answer(self, request: Request) -> Answer:
        minute = int(time.time() // 60)
        asked = self._minute[1] + 1 if self._minute[0] == minute else 1
        self._minute = (minute, asked)
        limits = {
            "X-RateLimit-Limit": str(_PER_MINUTE),
            "X-RateLimit-Remaining": str(max(0, _PER_MINUTE - asked)),
            "X-RateLimit-Reset": str((minute + 1) * 60),
        }
        if asked > _PER_MINUTE:
            wait = {"Retry-After": str(int((minute + 1) * 60 - time.time()) + 1)}
            return as_json({"detail": "Rate limit exceeded"}, status=429, headers={**limits, **wait})
        named = _PATH.fullmatch(request.path)
        if not named or "/".join(filter(None, named.groups())) != self._repository:
            return as_json({"message": "object not found", "errinfo": {}}, status=404, headers=limits)
        return self._page(request, limits)

    def _page(self, request: Request, limits: dict[str, str]) -> Answer:
        tags = self._sorted(request.query.get("ordering"))
        tags = [tag for tag in tags if request.query.get("name", "") in tag.name]
        try:
            page = int(request.query.get("page", "1"))
            size = min(_MOST, int(request.query.get("page_size", "10")))
        except ValueError:
            return as_json({"message": "page and page_size are numbers"}, status=400, headers=limits)
        if page < 1 or size < 1 or (page > 1 and (page - 1) * size >= len(tags)):
            return as_json({"message": "object not found", "errinfo": {}}, status=404, headers=limits)

        def address(number: int) -> str:
            return f"{self.site.url}{request.path}?{urlencode({**request.query, 'page': number, 'page_size': size})}"

        return as_json(
            {
                "count": len(tags),
                "next": address(page + 1) if page * size < len(tags) else None,
                "previous": address(page - 1) if page > 1 else None,
                "results": [_tag(tag) for tag in tags[(page - 1) * size : page * size]],
            },
            headers=limits,
        )

    def _sorted(self, ordering: str | None) -> list[Tag]:
        tags = list(self._tags())
        match ordering:
            case "last_updated" | "-last_updated":  # the plain word means the newest first
                return sorted(tags, key=lambda tag: _text(tag.pushed_at) or "", reverse=ordering == "last_updated")
            case "name" | "-name":
                return sorted(tags, key=lambda tag: tag.name, reverse=ordering == "-name")
            case _:
                return sorted(tags, key=lambda tag: sha256(tag.name.encode()).digest())


def _tag(tag: Tag) -> dict[str, Any]:
    pushed = _text(tag.pushed_at)
    images = [
        {
            "architecture": platform.split("/")[1],
            "features": "",
            "variant": None,
            "digest": digest,
            "os": platform.split("/")[0],
            "os_features": "",
            "os_version": None,
            "size": tag.night.sizes.get(platform, 0),
            "status": "active",
            "last_pulled": None,
            "last_pushed": pushed,
        }
        for platform, digest in tag.night.platforms.items()
        if tag.platform in {None, platform}
    ]
    number = int(sha256(tag.name.encode()).hexdigest()[:7], 16)
    return {
        "creator": 1,
        "id": number,
        "images": images,
        "last_updated": pushed,
        "last_updater": 1,
        "last_updater_username": "vllmbot",
        "name": tag.name,
        "repository": 22_000_000,
        "full_size": max(tag.night.sizes.values()),
        "v2": True,
        "tag_status": "active",
        "tag_last_pulled": None,
        "tag_last_pushed": pushed,
        "media_type": tag.night.media_type,
        "content_type": "image",
        "digest": tag.digest,
    }


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z") if moment else None
