"""Samples of the ops of core/ops/shape and their references in NumPy."""

CASES = {}
