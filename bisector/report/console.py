"""Results for people at a terminal, readable at 80 columns; piped, the same text without colour.

Nothing read from an archive or an index reaches the terminal as markup or control characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from bisector.model import ANY_ARCH, Answer, Depth, LibraryStatus, Observation
from bisector.report.finding import finding_parts, legend, plan_parts
from bisector.report.logs import audit_parts, diagnosis_parts
from bisector.report.night.page import page
from bisector.report.night_parts import night_parts
from bisector.report.tables import checkup_parts, harvest_parts, rows_parts
from bisector.report.words import (
    Paste,
    asked,
    build_line,
    cost_line,
    count,
    day,
    gate_sentence,
    gate_words,
    mark,
    names,
    package_rows,
    pairs,
    safe,
    section,
    short,
    size,
)
from bisector.results import (
    Audit,
    Check,
    Checkup,
    Diagnosis,
    Difference,
    Finding,
    Harvest,
    Inspection,
    Night,
    Plan,
    Result,
    Rows,
    Timeline,
    TimelineEntry,
)


def render(result: Result, console: Console) -> None:
    """Print a result."""
    show(parts(result), console)


def show(parts: Iterable[RenderableType], console: Console) -> None:
    """Print the parts of an answer; lines to paste are never broken."""
    with console.capture() as capture:
        for part in parts:
            # Plain strings in tables come from outside as often as not: brackets in them are no markup.
            console.print(part, soft_wrap=isinstance(part, Paste), markup=False)
    for line in capture.get().splitlines():
        # Tables fill their columns with blanks, which nobody wants to copy.
        console.file.write(f"{line.rstrip()}\n")


def parts(result: Result) -> Iterator[RenderableType]:  # noqa: C901 - a line for each kind of answer
    """A result, piece by piece."""
    match result:
        case Finding():
            return finding_parts(result)
        case Night():
            return night_parts(page(result))
        case Plan():
            return plan_parts(result)
        case Check():
            return _check(result)
        case Inspection():
            return _inspection(result)
        case Difference():
            return _difference(result)
        case Timeline():
            return _timeline(result)
        case Checkup():
            return checkup_parts(result)
        case Harvest():
            return harvest_parts(result)
        case Rows():
            return rows_parts(result)
        case Diagnosis():
            return diagnosis_parts(result)
        case Audit():
            return audit_parts(result)


def _arch_title(arch: str) -> str:
    return "any architecture" if arch == ANY_ARCH else arch


def _check(check: Check) -> Iterator[RenderableType]:
    question = check.question
    if question.note:
        yield Text(question.note, style="dim")
    for checked in check.builds:
        verdict = checked.verdict
        yield Text.assemble(
            mark(verdict), f" {build_line(checked.build, checked.observation)}: ", (verdict.answer, "bold")
        )
        yield Text(f"  {asked(question)}: {safe(verdict.reason)}")
        if sentence := gate_sentence(checked.gate, question, checked.build):
            yield Text(f"  {sentence}")
    yield Text(cost_line(check.cost), style="dim")


def _inspection(inspection: Inspection) -> Iterator[RenderableType]:
    seen = inspection.seen
    observation = seen.observation
    yield Text(build_line(seen.build, observation), style="bold")
    yield pairs(_facts(observation))
    for arch, kernels in observation.kernels.items():
        heading = f"{_arch_title(arch)}: {count(len(kernels), 'operation')}"
        yield section(heading, names(kernel.op for kernel in kernels))
    if observation.packages:
        rows = ((safe(package.name), Text(safe(package.version))) for package in observation.packages)
        yield section("Packages", pairs(rows))
    if observation.libraries is not None:
        yield section("CUDA libraries", _libraries(observation))
    source = "from history" if seen.from_history else cost_line(inspection.cost)
    yield section("Cost", Text(source))


def _facts(observation: Observation) -> Iterator[tuple[str, RenderableType]]:
    library, provenance = observation.deep_gemm, observation.provenance
    match library.status:
        case LibraryStatus.PRESENT:
            words = f"bundled, version {safe(library.version or 'not stated')}"
        case LibraryStatus.ABSENT:
            words = "not bundled"
        case LibraryStatus.UNREADABLE:
            words = "bundled, could not be read"
    yield "DeepGEMM", Text(words)
    if library.reason:
        yield "", Text(safe(library.reason))
    for path in library.files:
        yield "", Text(safe(path), style="dim")
    yield "vLLM", Text(safe(provenance.version or "version not found"))
    if provenance.local_build:
        yield "", Text(safe(provenance.local_build))
    yield "gate", Text(f"sends to DeepGEMM: {gate_words(observation.gate)}")
    yield "read from", Text(observation.evidence)


def _libraries(observation: Observation) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for library in observation.libraries or ():
        targets = ", ".join(f"{target.target} ×{target.count}" for target in library.targets)
        words = safe(library.unreadable) if library.unreadable else targets or "no device code"
        table.add_row(Text(safe(library.path)), size(library.size), Text(words))
    return table


def _difference(difference: Difference) -> Iterator[RenderableType]:
    sides = (("before", difference.before), ("after", difference.after))
    yield pairs((label, Text(build_line(seen.build, seen.observation))) for label, seen in sides)
    for change in difference.archs:
        title = _arch_title(change.arch)
        if change.lost:
            yield section(f"{title} lost {count(len(change.lost), 'operation')}", names(change.lost))
        if change.gained:
            yield section(f"{title} gained {count(len(change.gained), 'operation')}", names(change.gained))
    if not difference.archs:
        yield section("Kernels", Text("The same in both."))
    if difference.packages:
        yield section("Packages changed", package_rows(difference.packages))
    before, after = difference.gate
    if before != after:
        yield section("Gate", Text(f"{gate_words(before)} → {gate_words(after)}"))
    yield section("Cost", Text(cost_line(difference.cost)))


def _timeline(timeline: Timeline) -> Iterator[RenderableType]:
    yield Text(f"{safe(timeline.source)}: {count(len(timeline.entries), 'build')}", style="bold")
    archs = tuple(dict.fromkeys(arch for entry in timeline.entries for arch in entry.kernels))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="dim")
    for _ in archs:
        table.add_column(justify="right")
    table.add_column(overflow="fold", style="dim")
    table.add_row("build", "published", *archs, "")
    for entry in timeline.entries:
        build = entry.build
        remarks = [*build.marks, *(["no files for this platform"] if build.location is None else [])]
        cells = [_operations(entry, arch) for arch in archs]
        table.add_row(short(build.id), day(build.published_at), *cells, ", ".join(remarks))
    yield table
    if archs:
        yield Text()
        yield legend()
    else:
        yield Text("The history knows no kernels of these builds yet; find-regression and inspect read them.")


def _operations(entry: TimelineEntry, arch: str) -> Text:
    """How many operations, where the library was read; else the mark of the answer."""
    verdict, summary = entry.kernels.get(arch), entry.summary
    if verdict and summary and verdict.answer is Answer.GOOD and summary.depth is Depth.KERNELS:
        return Text(str(summary.operations[arch]), style="green")
    return mark(verdict)
