"""Script of a stranger, run against an install prefix: an op through the Python package."""
import yoke

print("%g %g %g" % tuple(yoke.relu(yoke.tensor([-1.0, 0.0, 2.5], device="cpu")).tolist()))
