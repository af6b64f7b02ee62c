"""The version of the package, of the simulator and of the project."""

__version__ = "0.1.0"
