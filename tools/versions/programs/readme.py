"""The program of README.md: its first block of Python exports, then the export is simulated."""

import pathlib
import re
import sys

import tpusim

readme = pathlib.Path(sys.argv[1]).read_text()
block = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
assert block is not None
assert "tpusim.export(" in block[1]
exec(compile(block[1], "README.md", "exec"), {"__name__": "readme"})
report = tpusim.simulate("step.pb")
assert report.collective_records
print(report.step_time_ns)
