--- PyTorch's place of checkpointing: utils.checkpoint.checkpoint(fn, x) is yoke.checkpoint({}, fn, x).
local core = require "yoke.core"
local missing = require "yoke.missing"

local checkpoint = { checkpoint_sequential = require "yoke.checkpoint" }

--- Returns fn(...), whose inner results are computed again in the backward pass.
function checkpoint.checkpoint(fn, ...) return core.checkpoint({}, fn, ...) end

return missing.module("utils", { checkpoint = checkpoint })
