--- yoke.checkpoint_sequential, over yoke.checkpoint.
local core = require "yoke.core"
local options = require "yoke.options"

-- A list of functions or modules, or an nn.Sequential.
local function listed(fns)
    if type(fns) ~= "table" then
        core.raise("type", "checkpoint_sequential", ("argument 'fns' is %s; it takes a list of functions"):format(
            options.shown(fns)))
    end
    if getmetatable(fns) == nil then return fns end
    local list = {}
    for _, module in fns:children() do list[#list + 1] = module end
    return list
end

local function run(fns, first, last, x)
    for i = first, last do x = fns[i](x) end
    return x
end

--- x through all functions, as `segments` parts of near the same length, each in a scope but the last, whose results
--- backward wants at once.
return function(fns, segments, x, given)
    local list = listed(fns)
    local named = options.named("checkpoint_sequential", given, { policy = options.none, offload = options.none })
    if #list == 0 then
        core.raise("value", "checkpoint_sequential", "argument 'fns' is empty; it takes at least one function, such as the layers of a network")
    end
    if math.type(segments) ~= "integer" or segments < 1 or segments > #list then
        core.raise("value", "checkpoint_sequential", ("argument 'segments' is %s, for %d functions; it takes a whole number of 1 or more, and at most one for each"):format(
            options.shown(segments), #list))
    end
    local length = #list // segments
    for part = 0, segments - 2 do
        x = core.checkpoint(named, run, list, part * length + 1, (part + 1) * length, x)
    end
    return run(list, (segments - 1) * length + 1, #list, x)
end
