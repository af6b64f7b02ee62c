"""`python -m tpusim.flags`."""

import sys

from tpusim.flags.command import main

sys.exit(main())
