"""Job of the pages' commands: joins the other ranks, if a launcher started any, and averages a tensor."""
import os

import yoke

gradient = yoke.ones(3)
if "RANK" in os.environ:
    group = yoke.comm.init()
    group.all_reduce(gradient, op="avg")
print(gradient.tolist())
