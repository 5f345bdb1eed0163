"""Samples of the ops of core/ops/matmul and their references in NumPy."""

CASES = {}
