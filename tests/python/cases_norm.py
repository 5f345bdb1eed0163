"""Samples of the ops of core/ops/norm and their references in NumPy."""

CASES = {}
