-- Script of a stranger, run against an install prefix: an op through the Lua module.
local yoke = require "yoke"

local y = yoke.relu(yoke.tensor({-1.0, 0.0, 2.5}, {device = "cpu"})):tolist()
print(string.format("%g %g %g", y[1], y[2], y[3]))
