--- yoke.data: data files, and which examples each rank takes.
local core = require "yoke.core"

local data = {}

--- The tensor of an IDX file (the format of MNIST), plain or gzip; nil and an error if it cannot be read.
data.read_idx = core.read_idx

--- Sampler of a rank's examples: yoke/sampler.lua.
data.DistributedSampler = require "yoke.sampler"

return data
