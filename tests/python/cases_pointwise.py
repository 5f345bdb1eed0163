"""Samples of the ops of core/ops/pointwise and their references in NumPy."""

CASES = {}
