"""Processor time of this process and of its children that have ended."""

import os


def seconds() -> float:
    """User and system."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
