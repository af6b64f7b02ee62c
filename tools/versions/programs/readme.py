"""The program of README.md: its block of Python that exports, then the export is simulated."""

import pathlib
import re
import sys

import tpusim

readme = pathlib.Path(sys.argv[1]).read_text()
blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
(block,) = [each for each in blocks if "tpusim.export(" in each]
exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
report = tpusim.simulate("step.pb")
assert report.collective_records
print(report.step_time_ns)
