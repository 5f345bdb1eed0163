"""A script of somebody else's, run against an install prefix: one op through the Python package."""
import yoke

print("%g %g %g" % tuple(yoke.relu(yoke.tensor([-1.0, 0.0, 2.5], device="cpu")).tolist()))
