"""vLLM's gate: which GPUs it sends to DeepGEMM at all. Read from its source, which is never run. Pure.

Since 0.20 it is ``support_deep_gemm`` in ``vllm/platforms/cuda.py``::

    return cls.is_device_capability(90) or cls.is_device_capability_family(100) or cls.is_device_capability_family(120)

Before, the same expression stood in ``is_deep_gemm_supported`` in ``vllm/utils/deep_gemm.py``, behind a variable and
joined by ``and`` with conditions on other things than the device.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from bisector.model import Gate

_LONGEST_FUNCTION = 4096
_LOWEST, _HIGHEST = 50, 999
_FUNCTIONS = ("support_deep_gemm", "is_deep_gemm_supported")
_ONE = "is_device_capability"
_FAMILY = "is_device_capability_family"
_BESIDE_THE_DEVICE = {"is_cuda", "has_deep_gemm", "VLLM_USE_DEEP_GEMM"}


class _NotUnderstood(Exception):
    """The function has a form that no vLLM had when this was written."""


def read_gate(source: bytes) -> Gate | None:
    """The gate in a Python source, or ``None`` if it does not define one."""
    function = _function(source.decode("utf-8", "replace"))
    if function is None:
        return None
    try:
        found = list(_admitted(function))
    except (_NotUnderstood, SyntaxError, ValueError, RecursionError, MemoryError):
        return Gate(readable=False)
    return Gate(
        capabilities=tuple(dict.fromkeys(arch for check, arch in found if check == _ONE)),
        families=tuple(dict.fromkeys(arch for check, arch in found if check == _FAMILY)),
    )


def _function(source: str) -> str | None:
    """The text of the gate's function alone: the rest of a hostile file is not worth parsing."""
    for name in _FUNCTIONS:
        pattern = rf"^(?P<indent>[ \t]*)def {name}\(.*\n(?:(?P=indent)[ \t]+.*\n|[ \t]*\n|(?P=indent)\).*\n)*"
        if match := re.search(pattern, f"{source}\n", re.MULTILINE):
            return textwrap.dedent(match.group())
    return None


def _admitted(function: str) -> Iterator[tuple[str, str]]:
    if len(function) > _LONGEST_FUNCTION:
        raise _NotUnderstood
    (definition,) = ast.parse(function).body
    if not isinstance(definition, ast.FunctionDef):
        raise _NotUnderstood
    meanings: dict[str, ast.expr] = {}
    *statements, last = definition.body
    for statement in statements:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                meanings[name] = value
            case _:
                raise _NotUnderstood
    match last:
        case ast.Return(value=ast.expr() as value):
            yield from _alternatives(value, meanings)
        case _:
            raise _NotUnderstood


def _alternatives(expression: ast.expr, meanings: Mapping[str, ast.expr]) -> Iterator[tuple[str, str]]:
    match expression:
        case ast.Constant(value=False):
            return
        case ast.Name(id=name) if name in meanings:
            # Without the name among the meanings: `x = x` has no end.
            others = {other: value for other, value in meanings.items() if other != name}
            yield from _alternatives(meanings[name], others)
        case ast.BoolOp(op=ast.Or(), values=values):
            for value in values:
                yield from _alternatives(value, meanings)
        case ast.BoolOp(op=ast.And(), values=values):
            yield from _alternatives(_about_the_device(values), meanings)
        case ast.Call(func=ast.Attribute(attr=check), args=[capability], keywords=[]) if check in (_ONE, _FAMILY):
            yield check, _arch(capability)
        case _:
            raise _NotUnderstood


def _about_the_device(values: Sequence[ast.expr]) -> ast.expr:
    about = [value for value in values if not _beside(value)]
    if len(about) != 1:
        raise _NotUnderstood
    return about[0]


def _beside(expression: ast.expr) -> bool:
    match expression:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[], keywords=[]):
            return name in _BESIDE_THE_DEVICE
        case ast.Attribute(attr=name):
            return name in _BESIDE_THE_DEVICE
        case _:
            return False


def _arch(capability: ast.expr) -> str:
    match capability:
        case ast.Constant(value=int(number)):
            pass
        case ast.Tuple(elts=[ast.Constant(value=int(major)), ast.Constant(value=int(minor))]):
            number = 10 * major + minor
        case _:
            raise _NotUnderstood
    if not _LOWEST <= number <= _HIGHEST:
        raise _NotUnderstood
    return f"sm{number}"
