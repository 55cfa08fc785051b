"""heterotrain: trains a transformer as a plan of the operator says (docs/training.md)."""

__version__ = "0.1.0"
