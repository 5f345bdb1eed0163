--- yoke.backends: what the engines behind the ops may do, for the whole process. Fields are read and written.
local core = require "yoke.core"

local settings = { allow_tf32 = { get = core.get_allow_tf32, set = core.set_allow_tf32 } }

local function setting(name)
    if settings[name] then return settings[name] end
    core.raise("value", "backends", "there is no setting '" .. tostring(name) .. "'; there is allow_tf32")
end

return setmetatable({}, {
    __index = function(_, name) return setting(name).get() end,
    __newindex = function(_, name, value) setting(name).set(value) end,
    __metatable = "yoke.backends",
})
