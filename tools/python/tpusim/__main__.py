"""`python -m tpusim ...` is the command `tpusim ...`."""

from tpusim.console import main

if __name__ == "__main__":
    main()
