"""Converts a profile with XProf's own converter: `python xprof_reader.py FILE TOOL...`.

Prints {tool: what its page is made of} as JSON. A process of its own, since XProf and JAX bring
the same libraries.
"""

import json
import os
import pathlib
import sys
from typing import Any


def tables(profile: str, *tools: str) -> dict[str, Any]:
    """The data of each page."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from xprof.convert import raw_to_tool_data

    # As its server does first: it takes the programs out of the profile, which the memory viewer
    # reads by name.
    raw_to_tool_data.xspace_to_tool_names([profile])
    (program,) = (
        path.name.removesuffix(".hlo_proto.pb")
        for path in pathlib.Path(profile).parent.glob("*.hlo_proto.pb")
    )
    made = {}
    for tool in tools:
        data, _ = raw_to_tool_data.xspace_to_tool_data(
            [profile],
            tool,
            {"use_saved_result": False, "module_name": program, "memory_space": "0"},
        )
        made[tool] = json.loads(data)
    return made


if __name__ == "__main__":
    json.dump(tables(*sys.argv[1:]), sys.stdout)
