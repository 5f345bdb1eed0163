--- PyTorch's words for mixed precision: amp.autocast("cuda", {dtype = "float16"}, fn), amp.GradScaler("cuda"). Without
--- a device of this kind both are off. Without a kind the device is "cuda".
local core = require "yoke.core"
local missing = require "yoke.missing"

local amp = {}

-- Returns the options after the kind of device, switched off without such a device, and the other arguments.
local function usable(kind, given, ...)
    if type(kind) ~= "string" then return usable("cuda", kind, given, ...) end
    local all = {}
    if type(given) == "string" then given = { dtype = given } end
    for name, value in pairs(type(given) == "table" and given or {}) do all[name] = value end
    all.enabled = all.enabled ~= false and core.is_available(kind:match "^[^:]+")
    if type(given) == "function" then return all, given, ... end
    return all, ...
end

--- A region of mixed precision, as yoke.autocast; it holds for every device.
function amp.autocast(...) return core.autocast(usable(...)) end

--- Loss scaling, as yoke.GradScaler.
function amp.GradScaler(...) return require "yoke.scaler" ((usable(...))) end

return missing.module("amp", amp)
