"""Everything that is private to JAX and that the package uses, one file per concern.

Public interfaces of JAX are used where they stand; what has no public name is asked for here, and
nowhere else (a test says so). Between versions such names move or go away. Each file therefore says
what becomes of its concern without them: it goes on through public interfaces, or ends in an error
that names the version and what is missing (`versions.internal`).

    tested.py         which versions are tested
    versions.py       whether this one is; how a private name is asked for
    frames.py         whose source line an operation has
    lowering.py       what a lowered program knows of its devices and shardings
    mlir.py           the reader of StableHLO and the converter to HLO
    mlir_rewrites.py  operations of StableHLO
    compiling.py      the TPU compiler's client
    meshes.py         the mesh that is the context of a call
    jaxprs.py         the programs inside of a program
    callbacks.py      the primitives that call back to Python
    names.py          the primitive that names a value for rematerialisation
    devices.py        the types of devices and clients, the table of TPUs
    pmapped.py        what is inside of a pmapped function
    dispatch.py       calls and operations on their way to be executed
    array_types.py    what makes a class an array
"""
