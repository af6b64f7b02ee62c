"""Pages in a browser: tabs, tables and figures as people see them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "KiB": 2**10, "MiB": 2**20}
UNITS |= {"GiB": 2**30}


def value_of(text: str) -> float:
    """Of "244.2 us" in nanoseconds, "27.33 MiB" in bytes, "4.6%" as a share."""
    if text.endswith("%"):
        return float(text[:-1]) / 100
    number, unit = text.split()
    return float(number) * UNITS[unit]


def choose(page: "Page", tab: str) -> None:
    """Clicks at a tab."""
    from playwright.sync_api import expect

    page.get_by_role("tab", name=tab, exact=True).click()
    expect(page.get_by_role("tab", name=tab, exact=True)).to_have_attribute("aria-selected", "true")


def rows_of(page: "Page", label: str) -> list[dict[str, str]]:
    """Of a table: a cell by the head of its column."""
    table = page.get_by_role("table", name=label, exact=True)
    heads = table.locator("thead th").all_inner_texts()
    return [
        dict(zip(heads, row.locator("td").all_inner_texts(), strict=True))
        for row in table.locator("tbody tr").all()
    ]
