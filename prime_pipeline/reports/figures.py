"""Dot-and-whisker plots as inline SVG, drawn by matplotlib. What they show is decided in ``charts``.

A figure takes its colours from the page, so that it follows light, dark and print; it holds no script, no style, no
address, and the same numbers give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from prime_pipeline.reports import wording
from prime_pipeline.reports.charts import Chart, Mark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 760.0
_ROW: Final = 26.0
_AXIS: Final = 44.0
_TITLE: Final = 26.0
_GAP: Final = 22.0
_MAX_LABEL: Final = 60
_FONT: Final = 12.5
_CHARACTER: Final = 6.7
_POINTS_PER_INCH: Final = 72
# Matplotlib wants colours, the page has variables: each of these stands for one.
_INK, _QUIET, _LINE, _MARK, _GROUND = "#101010", "#202020", "#303030", "#404040", "#505050"
_VARIABLES: Final = {
    _INK: "var(--text)",
    _QUIET: "var(--quiet)",
    _LINE: "var(--line)",
    _MARK: "var(--mark)",
    _GROUND: "var(--ground)",
}
_KEPT_STYLES: Final = frozenset(
    {"fill", "stroke", "stroke-width", "stroke-dasharray", "text-anchor", "opacity"}
)


def svg(chart: Chart, name: str) -> str:
    """The chart as an ``<svg>`` element.

    Args:
        chart: With at least one mark.
        name: Unique on the page; ids begin with it.
    """
    from io import StringIO

    import matplotlib.style

    words: dict[str, str] = {}
    drawn = StringIO()
    settings = {"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "DejaVu Sans"}
    with matplotlib.style.context(["default", settings]):  # whatever the user's matplotlibrc says
        figure = _figure(chart, words)
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return _inline(drawn.getvalue(), name, words, chart)


# --- drawing ----------------------------------------------------------------------------------------------------


def _figure(chart: Chart, words: dict[str, str]) -> Figure:
    """The figure; ``words`` receives the text that is to be put in place of each stand-in.

    Names are written in afterwards: matplotlib would measure them with a font that lacks most scripts, and read
    dollar signs as formulas.
    """
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(mark.label for mark in chart.marks))
    panels = list(dict.fromkeys(mark.panel for mark in chart.marks))
    left = min(16 + _CHARACTER * max(len(_shortened(label)) for label in labels), 0.58 * WIDTH)
    top = _TITLE if any(panels) else 8.0
    height = top + _ROW * len(labels) + _AXIS
    width = (WIDTH - left - 12 - _GAP * (len(panels) - 1)) / len(panels)
    figure = Figure(figsize=(WIDTH / _POINTS_PER_INCH, height / _POINTS_PER_INCH), dpi=_POINTS_PER_INCH)
    limits = _limits(chart)
    for at, panel in enumerate(panels):
        box = (
            (left + at * (width + _GAP)) / WIDTH,
            _AXIS / height,
            width / WIDTH,
            _ROW * len(labels) / height,
        )
        axes = figure.add_axes(box)
        _panel(axes, chart, [mark for mark in chart.marks if mark.panel == panel], labels, limits)
        _write(
            axes,
            words,
            f"panel{at}",
            _shortened(panel, int(width / _CHARACTER)),
            (limits[0], -0.5),
            (0, 8),
            "left",
            _INK,
        )
        if at == 0:
            for row, label in enumerate(labels):
                _write(axes, words, f"row{row}", _shortened(label), (limits[0], row), (-12, 0), "right", _INK)
    figure.text(
        (left + WIDTH - 12) / 2 / WIDTH, 8 / height, chart.axis, size=_FONT, color=_QUIET, ha="center"
    )
    return figure


def _panel(
    axes: Axes, chart: Chart, marks: Sequence[Mark], labels: Sequence[str], limits: tuple[float, float]
) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set(xlim=limits, ylim=(len(labels) - 0.5, -0.5), yticks=[])
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.grid(axis="x", color=_LINE, linewidth=1)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(4 if any(mark.panel for mark in marks) else 7))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value, chart)))
    axes.tick_params(axis="x", length=0, pad=7, labelsize=_FONT, labelcolor=_QUIET)
    if chart.is_change:
        axes.axvline(0, color=_QUIET, linewidth=1.2, clip_on=False)
    for line in axes.get_xgridlines():
        line.set_clip_on(False)
    for mark in marks:
        _draw(axes, mark, labels.index(mark.label))


def _draw(axes: Axes, mark: Mark, row: int) -> None:
    result = mark.result
    if result is None:
        return
    if mark.published is not None:
        axes.plot([mark.published], [row + 0.2], "D", ms=5.5, mfc=_GROUND, mec=_QUIET, mew=1.3, clip_on=False)
    if result.low is not None and result.high is not None:
        axes.plot(
            [result.low, result.high],
            [row, row],
            color=_MARK,
            linewidth=2,
            clip_on=False,
            solid_capstyle="butt",
        )
    axes.plot(
        [result.value],
        [row],
        "o",
        ms=8,
        mfc=_GROUND if mark.is_hollow else _MARK,
        mec=_MARK,
        mew=1.8,
        clip_on=False,
    )


def _write(
    axes: Axes,
    words: dict[str, str],
    stand_in: str,
    text: str,
    place: tuple[float, float],
    offset: tuple[float, float],
    align: str,
    color: str,
) -> None:
    words[stand_in] = text
    if text:
        centre = "center" if align == "right" else "baseline"
        axes.annotate(
            stand_in,
            place,
            xytext=offset,
            textcoords="offset points",
            ha=align,
            va=centre,
            size=_FONT,
            color=color,
            annotation_clip=False,
        )


def _limits(chart: Chart) -> tuple[float, float]:
    """The span of all that is drawn, the same in every panel, with a little air."""
    drawn = [number for mark in chart.marks for number in _numbers(mark)] + ([0.0] if chart.is_change else [])
    low, high = min(drawn), max(drawn)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 0.1
    return low - air, high + air


def _numbers(mark: Mark) -> Iterator[float]:
    if mark.result is not None:
        numbers = (mark.result.value, mark.result.low, mark.result.high, mark.published)
        yield from (number for number in numbers if number is not None)


def _tick(value: float, chart: Chart) -> str:
    value = round(float(value), 12)  # steps of a tenth do not add up to it
    shown = f"{100 * value:g}%" if chart.is_share else f"{value:g}"
    return ("+" if chart.is_change and value > 0 else "") + shown.replace("-", "−")


def _shortened(label: str, n_characters: int = _MAX_LABEL) -> str:
    return label if len(label) <= n_characters else f"{label[: n_characters - 1]}…"


# --- from a file to an element ----------------------------------------------------------------------------------


def _inline(text: str, name: str, words: Mapping[str, str], chart: Chart) -> str:
    root = ET.fromstring(text)  # noqa: S314 - matplotlib wrote it, with stand-ins for all foreign text
    for parent in root.iter():
        for child in [child for child in parent if _local(child.tag) in {"metadata", "style"}]:
            parent.remove(child)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    for element in root.iter():
        _make_plain(element, name, used)
        if element.tag == "text" and (element.text or "") in words:
            element.text = words[element.text or ""]
    _describe(root, name, chart)
    return ET.tostring(root, encoding="unicode")


def _make_plain(element: ET.Element, name: str, used: set[str]) -> None:
    """Names without name spaces, styles as attributes, which a strict policy allows, and ids only where used."""
    element.tag = _local(element.tag)
    element.tail = None
    attributes = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "style":
            _set_styles(element, value)
        elif key == "id":
            if value in used:
                element.set("id", f"{name}-{value}")
        else:
            element.set(key, value.replace("#", f"#{name}-") if key in {"href", "clip-path"} else value)


def _set_styles(element: ET.Element, styles: str) -> None:
    for style in filter(None, styles.split(";")):
        key, value = (part.strip() for part in style.split(":", 1))
        if key in _KEPT_STYLES:
            element.set(key, _VARIABLES.get(value, value))
        elif key.startswith("font") and (size := re.search(r"([\d.]+)px", value)):
            element.set("font-size", size[1])


def _describe(root: ET.Element, name: str, chart: Chart) -> None:
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update(viewBox=view, role="img")
    root.set("aria-labelledby", f"{name}-title {name}-description")
    description = ET.Element("desc", id=f"{name}-description")
    description.text = f"{chart.axis}: " + "; ".join(_spoken(mark, chart) for mark in chart.marks)
    title = ET.Element("title", id=f"{name}-title")
    title.text = chart.title
    root[:0] = [title, description]


def _spoken(mark: Mark, chart: Chart) -> str:
    if mark.result is None:
        return mark.label
    form = wording.percent if chart.is_share else wording.fine if chart.is_change else wording.score
    where = ", ".join(filter(None, (mark.label, mark.panel)))
    told = ", which cannot be told" if mark.is_hollow else ""
    return f"{where} {form(mark.result.value)} {wording.interval(mark.result, form)}{told}"


def _local(name: str) -> str:
    return name.rpartition("}")[2]
