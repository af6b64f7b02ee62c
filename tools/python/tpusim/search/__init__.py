"""Search over meshes, shardings, batches, slices, whatever a program can be built with.

The function is `tpusim.search`; the shell form is `python -m tpusim.search` or `tpusim search`.
"""
