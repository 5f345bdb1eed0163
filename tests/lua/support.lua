--- Helpers that the Lua tests share. A spec begins with
---     local support = dofile "tests/lua/support.lua"
---     local it = support.leak_free(it)
local yoke = require "yoke"

local support = {}

local function live_tensors()
    -- Collects twice: the first collection runs finalizers, the second frees the objects which the finalized objects
    -- held.
    collectgarbage()
    collectgarbage()
    return yoke.live_tensor_count()
end

--- Returns an `it` whose tests must leave no tensor behind.
function support.leak_free(it)
    return function(name, test)
        it(name, function()
            local before = live_tensors()
            test()
            local left = live_tensors() - before
            if left ~= 0 then error(left .. " tensors were left unclosed", 0) end
        end)
    end
end

--- Runs a function that must raise an error object with this code, and with each part in the message.
function support.fails(code, parts, fn, ...)
    local ok, err = pcall(fn, ...)
    if ok then error("nothing was raised; expected '" .. code .. "'", 2) end
    if type(err) ~= "table" or not err.message then error("no error object: " .. tostring(err), 2) end
    if err.code ~= code then
        error(("code '%s' and not '%s': %s"):format(err.code, code, err.message), 2)
    end
    for _, part in ipairs(type(parts) == "table" and parts or { parts }) do
        if not err.message:find(part, 1, true) then
            error(("'%s' is not in the message: %s"):format(part, err.message), 2)
        end
    end
    return err
end

--- Returns whether two nested lists of numbers agree to within a relative tolerance.
function support.close_to(actual, expected, tolerance)
    if type(expected) == "table" then
        if type(actual) ~= "table" or #actual ~= #expected then return false end
        for i = 1, #expected do
            if not support.close_to(actual[i], expected[i], tolerance) then return false end
        end
        return true
    end
    if type(expected) ~= "number" then return actual == expected end
    return math.abs(actual - expected) <= (tolerance or 1e-6) * math.max(1, math.abs(expected))
end

--- The path of a file with the given bytes, to be removed by the test.
function support.temporary_file(bytes)
    local path = os.tmpname()
    local file = assert(io.open(path, "wb"))
    file:write(bytes)
    file:close()
    return path
end

return support
