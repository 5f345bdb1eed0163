"""Stands in for PyTorch: run.py only checks whether the package exists."""
