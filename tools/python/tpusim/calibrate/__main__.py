"""`python -m tpusim.calibrate`."""

import sys

from tpusim.calibrate.command import main

sys.exit(main())
