"""The version of this package, where every layer can import it."""

__version__ = "0.3.0"
