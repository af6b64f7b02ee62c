"""Figures as small SVG files, with the same bytes each time."""

import io
import pathlib
import re
from typing import Any


def save(figure: Any, path: pathlib.Path) -> None:
    """Writes a figure of matplotlib as an SVG, with text as text."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "tpusim", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(smaller(text.getvalue()))


def smaller(svg: str) -> str:
    """Returns the picture without what no viewer needs.

    That is metadata, names of groups, groups around one element, styles that a marker's definition
    has already, more than two decimals, and white space.
    """
    svg = re.sub(r"<metadata>.*?</metadata>|<!DOCTYPE.*?>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s+", " ", svg).replace("> <", "><").replace(' "', '"')
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"(\.\d\d)\d+", r"\1", svg)
    styles = dict(re.findall(r'<path id="([^"]*)"[^>]*? style="([^"]*)"', svg))

    def without_style(use: re.Match[str]) -> str:
        same = styles.get(use["of"]) == use["style"]
        return use[0].replace(f' style="{use["style"]}"', "") if same else use[0]

    svg = re.sub(
        r'<use xlink:href="#(?P<of>[^"]*)"[^>]* style="(?P<style>[^"]*)"', without_style, svg
    )
    before = ""
    while before != svg:
        before = svg
        svg = re.sub(r"<g>((?:(?!</?g[ >]).)*)</g>", r"\1", svg)
    return svg.replace("><", ">\n<") + "\n"
