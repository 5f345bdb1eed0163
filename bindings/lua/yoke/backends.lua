--- yoke.backends: what the engines behind the ops may do, for the whole process. Fields are read and written.
local core = require "yoke.core"

--- Settings of cuDNN for convolutions and attention on CUDA devices; a graph keeps the settings of its capture.
--- version() and why_unavailable() look for cuDNN, unless it is not enabled.
---@class yoke.Cudnn
---@field enabled boolean true at first; false from the start: it is not even looked for
---@field benchmark boolean the first call of each shape times its plans and keeps the quickest
---@field benchmark_limit integer how many of them, 10 at first; 0: all
---@field deterministic boolean false at first; true: cuDNN adds in order, so the same call gives the same bits
---@field workspace_limit integer bytes of memory that a call may want beside its tensors, 256 MiB at first
---@field version fun(): integer? 91900 is 9.19.0; nil where it cannot serve
---@field why_unavailable fun(): string? with its remedy; nil where it can serve
local cudnn = setmetatable({}, {
    __index = function(_, name)
        if name == "version" then return core.cudnn_version end
        if name == "why_unavailable" then return core.cudnn_why_unavailable end
        return core.cudnn_get(name)
    end,
    __newindex = function(_, name, value) core.cudnn_set(name, value) end,
    __metatable = "yoke.backends.cudnn",
})

local function refuse()
    core.raise("value", "backends", "cudnn is a group of settings; set a field of it, such as cudnn.enabled")
end

local settings = {
    allow_tf32 = { get = core.get_allow_tf32, set = core.set_allow_tf32 },
    cudnn = { get = function() return cudnn end, set = refuse },
}

local function setting(name)
    if settings[name] then return settings[name] end
    core.raise("value", "backends", "there is no setting '" .. tostring(name) .. "'; the settings are allow_tf32 and cudnn")
end

return setmetatable({}, {
    __index = function(_, name) return setting(name).get() end,
    __newindex = function(_, name, value) setting(name).set(value) end,
    __metatable = "yoke.backends",
})
