"""Samples of the ops of core/ops/reduce and their references in NumPy."""

CASES = {}
