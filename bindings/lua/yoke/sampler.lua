--- yoke.data.DistributedSampler: the indices, from 0, of a data set's examples that one rank takes in an epoch.
---
---     local sampler = yoke.data.DistributedSampler(60000, { rank = group.rank, world_size = group.size })
---     for epoch = 0, 9 do
---       sampler:set_epoch(epoch)
---       for index in sampler:indices() do ... end
---     end
local core = require "yoke.core"
local options = require "yoke.options"

local Sampler = {}
Sampler.__index = Sampler
Sampler.__name = "yoke.data.DistributedSampler"

--- How many examples a pass has that begins now.
function Sampler:__len() return self.handle:length() end

--- An iterator: one pass over what this rank gets of the epoch, or of what is left of it after load_state_dict.
function Sampler:indices()
    self.handle:begin()
    return function() return self.handle:next() end
end

--- The next pass is one of this epoch.
function Sampler:set_epoch(epoch) self.handle:set_epoch(epoch) end

--- {epoch =, consumed =}: how far all ranks together have come, when each has taken as many steps as this one.
function Sampler:state_dict()
    local epoch, consumed = self.handle:state()
    return { epoch = epoch, consumed = consumed }
end

--- The next pass goes on from there, on any number of ranks, without loss or repeat.
function Sampler:load_state_dict(dict)
    options.entries("load_state_dict", "dict", dict, { "epoch", "consumed" })
    self.handle:load(dict.epoch, dict.consumed)
end

--- The next pass deals what is left of the epoch among the ranks of `group`, which all call it.
function Sampler:regroup(group) self.handle:regroup(group.handle) end

function Sampler:close() self.handle:close() end
Sampler.__close = Sampler.close

-- {rank = 0, world_size = 1, shuffle = true, seed = 0, drop_last = false, pad = true, shares =}: see
-- docs/distributed.md.
return function(n, given)
    local named = options.named("DistributedSampler", given, { rank = 0, world_size = 1, shuffle = true, seed = 0, drop_last = false,
        pad = true, shares = options.none })
    local shares = named.shares or nil
    if shares ~= nil and (type(shares) ~= "table" or #shares ~= named.world_size) then
        core.raise("value", "DistributedSampler", ("option 'shares' is %s; it takes a list of one number for each of %s ranks"):format(
            type(shares) == "table" and ("a list of %d"):format(#shares) or options.shown(shares), tostring(named.world_size)))
    end
    return setmetatable({ handle = core._sampler(n, named.rank, named.world_size, named.shuffle, named.seed, named.drop_last,
        named.pad, shares) }, Sampler)
end
