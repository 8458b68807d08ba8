"""Launch commands inside YAML: compose files, Kubernetes manifests, and what `docker inspect` prints (JSON is YAML)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from bisector.diagnosis.launch import Launch, Setting, Word, settings, words

_LOOKS_LIKE_ONE = re.compile(
    r"^[\s\[{-]*\"?(?:services|command|args|entrypoint|environment|env|containers|Args|Cmd|Env)\"?\s*:", re.MULTILINE
)
_COMMANDS = frozenset({"command", "args", "entrypoint", "Args", "Cmd", "Entrypoint"})
_VARIABLES = frozenset({"environment", "env", "Env"})
_FILES = frozenset({"env_file", "envFrom"})


def launch(text: str) -> Launch:
    """What a launch command sets, be it written for a shell or in YAML."""
    if _LOOKS_LIKE_ONE.search(text):
        try:
            documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        except yaml.YAMLError:
            documents = []  # a script with a colon in it, or a manifest cut short: read as words
        if any(isinstance(document, yaml.CollectionNode) for document in documents):
            return _joined(_walk(documents, text.splitlines()))
    return settings(words(text))


def _joined(parts: Iterator[Launch]) -> Launch:
    found = list(parts)
    return Launch(
        settings=tuple(sorted((each for part in found for each in part.settings), key=lambda each: each.line)),
        elsewhere=tuple(name for part in found for name in part.elsewhere),
    )


def _walk(documents: list[yaml.Node], lines: list[str]) -> Iterator[Launch]:
    """Every command and variable of a document. A node that aliases share is read once: they cannot multiply."""
    waiting = list(reversed(documents))
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case yaml.SequenceNode():
                waiting += reversed(node.value)
            case yaml.MappingNode():
                for key, value in node.value:
                    name = str(key.value)
                    if name in _COMMANDS:
                        yield settings(_words(value, lines))
                    elif name in _VARIABLES:
                        yield Launch(settings=tuple(_variables(value)))
                    elif name in _FILES:
                        yield Launch(settings=(), elsewhere=tuple(_scalars(value)))
                    else:
                        waiting.append(value)
            case _:
                continue


def _words(node: yaml.Node, lines: list[str]) -> Iterator[Word]:
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            if not isinstance(each, yaml.ScalarNode):
                continue
            # ["sh", "-c", "vllm serve …"] holds a command in one of its words
            inner = list(words(each.value, each.start_mark.line + 1)) if " --" in each.value else []
            yield from inner or [Word(each.value, each.start_mark.line + 1)]
    elif isinstance(node, yaml.ScalarNode):
        first, last = node.start_mark.line, node.end_mark.line
        if node.style in {"|", ">"}:
            # as it stands in the file, since folding loses the lines
            yield from words("\n".join(lines[first + 1 : last]), first + 2)
        else:
            yield from words(node.value, first + 1)


def _variables(node: yaml.Node) -> Iterator[Setting]:
    pairs: list[tuple[str, str, int]] = []
    if isinstance(node, yaml.MappingNode):
        pairs = [(key.value, value.value, key.start_mark.line) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            if isinstance(each, yaml.ScalarNode):
                name, _, value = each.value.partition("=")
                pairs.append((name, value, each.start_mark.line))
            elif isinstance(each, yaml.MappingNode):
                entry = {key.value: value.value for key, value in each.value if isinstance(value, yaml.ScalarNode)}
                pairs.append((entry.get("name", ""), entry.get("value", ""), each.start_mark.line))
    for name, value, line in pairs:
        if isinstance(value, str):
            yield Setting(name=name, value=value, kind="environment", line=line + 1)


def _scalars(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.ScalarNode):
        yield node.value
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _scalars(each)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value in {"path", "name"} or isinstance(value, yaml.MappingNode):
                yield from _scalars(value)
