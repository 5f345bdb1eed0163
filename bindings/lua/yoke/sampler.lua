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

--- Returns how many examples a pass has that begins now.
function Sampler:__len() return self.handle:length() end

--- Returns an iterator: a pass over this rank's part of the epoch, or, after load_state_dict, of the rest of the
--- epoch. The state follows the iterator. So the iterator raises if it goes on after another was begun, or after the
--- state was set.
function Sampler:indices()
    self.handle:begin()
    local own, is_over = {}, false
    self.pass = own
    return function()
        if is_over then return nil end
        if self.pass ~= own then
            core.raise("state", "DistributedSampler", "another pass, state or epoch began before this pass ended; use one pass at a time, and another sampler to look at the order")
        end
        local index = self.handle:next()
        is_over = index == nil
        return index
    end
end

--- The next pass is one of this epoch.
function Sampler:set_epoch(epoch)
    local before = self.handle:state()
    self.handle:set_epoch(epoch)
    if epoch ~= before then self.pass = nil end
end

--- {epoch =, consumed =}: how far all ranks together have come, when each has taken as many steps as this rank.
function Sampler:state_dict()
    local epoch, consumed = self.handle:state()
    return { epoch = epoch, consumed = consumed }
end

--- The next pass goes on from there, on any number of ranks, without loss or repeat.
function Sampler:load_state_dict(dict)
    options.entries("load_state_dict", "dict", dict, { "epoch", "consumed" })
    self.handle:load(dict.epoch, dict.consumed)
    self.pass = nil
end

--- Deals the rest of the furthest rank's epoch among the ranks of `group`, from the next pass on; all its ranks call
--- it.
function Sampler:regroup(group)
    local handle = type(group) == "table" and group.handle
    if not handle then
        core.raise("type", "regroup", ("argument 'group' is %s; it takes a group, of yoke.comm.init"):format(options.shown(group)))
    end
    self.handle:regroup(handle)
    self.pass = nil
end

function Sampler:close() self.handle:close() end
Sampler.__close = Sampler.close
options.check_self(Sampler, "sampler")

local function own_rank()
    local group = core._comm_group()
    if not group then return 0, 1 end
    local rank, size = group:about()
    group:close()
    return rank, size
end

-- {rank =, world_size =, shuffle = true, seed = 0, drop_last = false, pad = true, shares =}: see docs/distributed.md.
-- Rank and world_size are the default group's, if there is a default group, else a single rank's.
return function(n, given)
    local named = options.named("DistributedSampler", given, { rank = options.none, world_size = options.none, shuffle = true, seed = 0, drop_last = false,
        pad = true, shares = options.none })
    if (named.rank == nil) ~= (named.world_size == nil) then
        core.raise("value", "DistributedSampler", ("option 'rank' is %s and 'world_size' is %s; give both, or neither"):format(
            tostring(named.rank), tostring(named.world_size)))
    elseif named.rank == nil then
        named.rank, named.world_size = own_rank()
    end
    local shares = named.shares or nil
    if shares ~= nil and (type(shares) ~= "table" or #shares ~= named.world_size) then
        core.raise("value", "DistributedSampler", ("option 'shares' is %s; it takes a list of one number for each of %s ranks"):format(
            type(shares) == "table" and ("a list of %d"):format(#shares) or options.shown(shares), tostring(named.world_size)))
    end
    return setmetatable({ handle = core._sampler(n, named.rank, named.world_size, named.shuffle, named.seed, named.drop_last,
        named.pad, shares) }, Sampler)
end
