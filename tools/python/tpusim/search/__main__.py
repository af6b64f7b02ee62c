"""`python -m tpusim.search`."""

import sys

from tpusim.search.command import main

sys.exit(main())
