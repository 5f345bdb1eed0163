--- Constraints as a table: yoke.select(2, { min_free = "8GiB", same = "nvlink", homogeneous = true }); waiting for
--- devices; and a kind of them switched off for a while.
local core = require "yoke.core"
local options = require "yoke.options"

-- Numbers stand for bytes and seconds where a spec wants a unit.
local units = { min_free = "B", min_memory = "B", wait = "s" }
local seconds_in = { ms = 1e-3, s = 1, m = 60, h = 3600 }

--- A number as a spec has it: without an exponent.
local function plain(value)
    if math.type(value) == "integer" then return tostring(value) end
    return (("%.9f"):format(value):gsub("%.?0+$", ""))
end

local function constraint(key, value)
    if value == true then return key end
    local text
    if type(value) == "table" then
        text = table.concat(value, key == "min_cc" and "." or "+")
    elseif type(value) == "number" and units[key] then
        text = plain(value) .. units[key]
    else
        text = tostring(value)
    end
    if text:find(",", 1, true) then
        core.raise("value", "select", "argument '" .. key .. "' is '" .. text .. "'; a value must not contain a comma")
    end
    return key .. "=" .. text
end

--- Returns the spec of a table without its n, and n, nil if absent.
local function spec_of(constraints)
    local parts, keys = {}, {}
    for key in pairs(constraints) do keys[#keys + 1] = tostring(key) end
    table.sort(keys)
    for _, key in ipairs(keys) do
        local value = constraints[key]
        if key ~= "n" and value ~= false then parts[#parts + 1] = constraint(key, value) end
    end
    return #parts > 0 and "auto:" .. table.concat(parts, ",") or "auto", constraints.n
end

--- Returns a spec of constraints with replaced values; false removes a constraint.
local function changed(spec, changes)
    local parts = {}
    for part in spec:match("^auto:?(.*)$"):gmatch("[^,]+") do
        if changes[part:match("^%s*([^=%s]*)")] == nil then parts[#parts + 1] = part end
    end
    for key, value in pairs(changes) do
        if value then parts[#parts + 1] = key .. "=" .. value end
    end
    return #parts > 0 and "auto:" .. table.concat(parts, ",") or "auto"
end

--- Returns the wait of a spec in seconds; 0: no wait, or an invalid spec, for which the library raises.
local function wait_of(spec)
    local number, unit = ("," .. spec:match("^auto:?(.*)$")):match(",%s*wait%s*=%s*(%d+%.?%d*)%s*(%a+)%s*%f[,%z]")
    return number and seconds_in[unit] and tonumber(number) * seconds_in[unit] or 0
end

--- Sleeps in steps. Between steps callbacks run, and a hook set by Ctrl-C can end the script.
local function pause(seconds)
    local last = core.clock() + seconds
    while core.clock() < last do
        core._pause(math.min(last - core.clock(), 0.05))
        core.poll()
    end
end

--- Returns choose(spec) as soon as a device fits. The library could wait too, but within a call no signal reaches the
--- script.
local function waiting(seconds, spec, choose)
    local understood, problem = pcall(core.explain, spec)
    if not understood then return nil, problem end -- error of the given spec
    local last, step = core.clock() + seconds, 0.1
    while true do
        local chosen, err = choose(changed(spec, { wait = "1ms", fallback = "error" }))
        if chosen then return chosen end
        local left = last - core.clock()
        if err.code ~= "timeout" or left <= 0 then break end -- other errors do not change with time
        pause(math.min(left, step))
        step = math.min(2 * step, 1)
    end
    local late = core.clock() >= last
    local chosen, err = choose(changed(spec, { wait = false }))
    if not chosen and late and err.code == "unavailable" then
        err.code = "timeout"
        err.message = ("no device fitted within %g s: %s"):format(seconds, err.message)
    end
    return chosen, err
end

local function select(n, constraints)
    if type(n) == "table" then n, constraints = nil, n end
    if type(n) == "string" then
        core.raise("type", "select", ("argument 'n' is '%s'; give a number of devices, and constraints in a table: " ..
            'select(1, { min_free = "8GiB" }); to open the device of a spec, call yoke.device("%s")'):format(n, n))
    end
    local spec, count = spec_of(constraints or {})
    local function choose(text) return core._select(text, n or count) end
    local seconds = wait_of(spec)
    if seconds > 0 then return waiting(seconds, spec, choose) end
    return choose(spec)
end

-- Returns the device of a kind and an index: device("cuda", 1).
local function device_at(kind, index)
    if kind:find(":", 1, true) or index < 0 then
        core.raise("value", "device", ("arguments 'spec' and 'index' are \"%s\" and %d; give a kind and an index from 0, or a spec alone"):format(kind, index))
    end
    return core.device(kind .. ":" .. index)
end

local function device(...)
    local kind, index = ...
    if type(kind) == "string" and math.type(index) == "integer" and _G.select("#", ...) == 2 then return device_at(kind, index) end
    local spec = ...
    local seconds = type(spec) == "string" and spec:find("^auto:") and wait_of(spec) or 0
    if seconds > 0 then return waiting(seconds, spec, core.device) end
    return core.device(...)
end

-- Result of yoke.disabled(kind): closed once, by :close(), <close> or the collector.
local Disabled = {}
Disabled.__index = Disabled

function Disabled:close()
    local kind = self.kind
    self.kind = nil
    if kind then core.enable(kind) end
end
Disabled.__close, Disabled.__gc = Disabled.close, Disabled.close

--- Runs fn without devices of the kind and returns its results. Without fn, returns an object to close.
local function disabled(kind, fn, ...)
    if fn ~= nil and type(fn) ~= "function" then
        core.raise("type", "disabled", ("argument 'fn' is %s; it takes a function to run, or nothing for a scope to close"):format(
            options.shown(fn)))
    end
    core.disable(kind)
    if not fn then return setmetatable({ kind = kind }, Disabled) end
    local results = table.pack(pcall(fn, ...))
    core.enable(kind)
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
end

return { select = select, device = device, disabled = disabled }
