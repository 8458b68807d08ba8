"""What an image says of itself: claims, not proofs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from bisector.artifacts.image.manifest import ImageConfig

_FRACTION: Final = re.compile(r"(\.\d{6})\d+")
"""Docker writes nanoseconds; Python reads microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What an image says of itself.

    Attributes:
        created: When it was built, as written.
        commit: The commit it was built from.
        tag: The name it was built to have.
        environment: Its environment variables.
        labels: Its labels.
    """

    created: str | None = None
    commit: str | None = None
    tag: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def created_at(self) -> datetime | None:
        """When it was built; ``None`` when that cannot be understood or has no time zone."""
        try:
            moment = datetime.fromisoformat(_FRACTION.sub(r"\1", self.created or ""))
        except ValueError:
            return None
        return moment if moment.tzinfo else None


def read_claims(config: ImageConfig) -> Claims:
    """The claims in a configuration; vLLM's own variables and labels go before the general ones."""
    runtime = config.config
    labels = (runtime.labels if runtime else None) or {}
    pairs = [pair.partition("=") for pair in (runtime.env if runtime else None) or ()]
    variables = {name: value for name, _, value in pairs}
    commit = variables.get("VLLM_BUILD_COMMIT") or labels.get("ai.vllm.build.commit")
    return Claims(
        created=config.created,
        commit=commit or labels.get("org.opencontainers.image.revision") or None,
        tag=variables.get("VLLM_IMAGE_TAG") or labels.get("ai.vllm.image.tag") or None,
        environment=variables,
        labels=labels,
    )
