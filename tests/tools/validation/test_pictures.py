"""Pictures of pages are small, the same each time, and still pictures."""

import pathlib
import re
import xml.etree.ElementTree

import pictures
from matplotlib import pyplot


def test_a_figure_is_saved_small_and_the_same_each_time(tmp_path: pathlib.Path) -> None:
    texts = []
    for name in ("first.svg", "again.svg"):
        figure, axes = pyplot.subplots()
        axes.plot([1, 2, 3], [3.14159, 1, 2], "o-")
        axes.set_title("a title")
        pictures.save(figure, tmp_path / name)
        pyplot.close(figure)
        texts.append((tmp_path / name).read_text())
    text = texts[0]
    assert text == texts[1]
    root = xml.etree.ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert "a title" in text
    assert "metadata" not in text
    assert not re.search(r"\.\d{3}", text)
    # Three markers on one line, by the definition that each of them names.
    markers = re.findall(r'<use xlink:href="#(\w+)"', text)
    assert all(f'id="{marker}"' in text for marker in markers)
    assert max(map(markers.count, markers)) >= 3


def test_what_a_marker_defines_is_said_once() -> None:
    svg = (
        '<g id="a"><defs><path id="m" d="M 0 0" style="stroke: red"/></defs>'
        '<use xlink:href="#m" x="1.23456" style="stroke: red"/>'
        '<use xlink:href="#m" x="2" style="stroke: blue"/></g>'
    )
    assert pictures.smaller(svg).replace("\n", "") == (
        '<defs><path id="m" d="M 0 0" style="stroke: red"/></defs>'
        '<use xlink:href="#m" x="1.23"/><use xlink:href="#m" x="2" style="stroke: blue"/>'
    )
