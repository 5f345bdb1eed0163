--- Constraints as a table: yoke.select(2, { min_free = "8GiB", same = "nvlink", homogeneous = true }).
local core = require "yoke.core"

-- Numbers stand for bytes and seconds where a spec wants a unit.
local units = { min_free = "B", min_memory = "B", wait = "s" }

local function constraint(key, value)
    if value == true then return key end
    if type(value) == "table" then value = table.concat(value, "+") end
    local text = tostring(value) .. (type(value) == "number" and units[key] or "")
    if text:find(",", 1, true) then
        core.raise("value", "select", "argument '" .. key .. "' is '" .. text .. "'; a value has no comma")
    end
    return key .. "=" .. text
end

local function select(n, constraints)
    if type(n) == "table" then n, constraints = nil, n end
    local parts, keys = {}, {}
    for key in pairs(constraints or {}) do keys[#keys + 1] = tostring(key) end
    table.sort(keys)
    for _, key in ipairs(keys) do
        local value = constraints[key]
        if key == "n" then
            n = n or value
        elseif value ~= false then
            parts[#parts + 1] = constraint(key, value)
        end
    end
    return core._select(#parts > 0 and "auto:" .. table.concat(parts, ",") or "auto", n or 1)
end

--- Runs fn without devices of that kind, and gives back what it does.
local function disabled(kind, fn, ...)
    core.disable(kind)
    local results = table.pack(pcall(fn, ...))
    core.enable(kind)
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
end

return { select = select, disabled = disabled }
