from __future__ import annotations

import pytest

from bisector.results import UNKNOWN_CAUSE, Certainty, Layer
from tests.diagnosis.logs import read, read_lines


def test_an_unknown_failure_quotes_the_last_exception_and_the_first_error() -> None:
    diagnosis = read_lines(
        "(EngineCore pid=1) ERROR 11-29 11:31:32 [core.py:1510] The moon is in the wrong house",
        "Traceback (most recent call last):",
        '  File "/x/vllm/distributed/parallel_state.py", line 10, in here',
        "MoonError: wrong house",
        "(EngineCore pid=1) ERROR 11-29 11:31:33 [core.py:1510] Later",
        "vllm-1 exited with code 1",
    )
    [cause] = diagnosis.causes
    assert cause.id == UNKNOWN_CAUSE
    assert cause.layer is Layer.DISTRIBUTED
    assert cause.certainty is Certainty.POSSIBLE
    assert cause.line == 4
    assert cause.excerpt.splitlines()[:2] == ["MoonError: wrong house", "The moon is in the wrong house"]
    assert diagnosis.exit_code == 3


def test_the_consequence_is_quoted_after_what_tells_more() -> None:
    [cause] = read_lines(
        "(EngineCore pid=1) ERROR 11-29 11:31:32 [core.py:1510] MoonError: wrong house",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    ).causes
    assert cause.excerpt.splitlines()[0] == "MoonError: wrong house"
    assert "Engine core initialization failed" in cause.excerpt
    assert cause.line == 1


def test_a_log_with_nothing_but_a_consequence_says_that_the_cause_stands_elsewhere() -> None:
    [cause] = read_lines("RuntimeError: Engine core initialization failed. See root cause above.").causes
    assert cause.id == UNKNOWN_CAUSE
    assert "stands above" in cause.meaning


def test_an_empty_log_is_unknown() -> None:
    diagnosis = read(b"")
    assert [(cause.id, cause.line) for cause in diagnosis.causes] == [(UNKNOWN_CAUSE, 0)]
    assert diagnosis.exit_code == 3


@pytest.mark.parametrize("line", ["INFO: all is well", "0 errors", "no error=ErrorInfo", "", "x" * 10_000])
def test_nothing_wrong_is_an_answer(line: str) -> None:
    diagnosis = read_lines(line)
    assert diagnosis.causes == ()
    assert diagnosis.exit_code == 0
