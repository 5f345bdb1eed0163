"""Stands in for PyTorch: it is only asked whether it is there."""
