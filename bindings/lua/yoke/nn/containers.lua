--- Modules that hold other modules in order. Members are named "0", "1" …: list[0] is the first, #list their number.
local core = require "yoke.core"
local base = require "yoke.nn.module"
local options = require "yoke.options"

local containers = {}

local Ordered = base.Module:extend("Ordered")

--- Adds a module at the end; returns the container.
function Ordered:append(module)
    local count = self:length()
    if not base.is_module(module) then
        core.raise("type", self.class_name, ("argument %d is %s; it takes modules"):format(count, options.shown(module)))
    end
    self[tostring(count)] = module
    return self
end

--- nn.Sequential(a, b, ...): each module's result is the next one's argument.
containers.Sequential = Ordered:extend("Sequential")

function containers.Sequential:init(...)
    for i = 1, select("#", ...) do self:append((select(i, ...))) end
end

function containers.Sequential:forward(x)
    for _, module in self:children() do x = module(x) end
    return x
end

--- nn.ModuleList{a, b, ...}: a list that a forward() of one's own goes through:
--- for _, module in self.blocks:children() do x = module(x) end
containers.ModuleList = Ordered:extend("ModuleList")

function containers.ModuleList:init(modules)
    if modules ~= nil and (type(modules) ~= "table" or base.is_module(modules)) then
        core.raise("type", "ModuleList", ("argument 'modules' is %s; it takes a list of modules"):format(options.shown(modules)))
    end
    for _, module in ipairs(modules or {}) do self:append(module) end
    for key in pairs(modules or {}) do
        if math.type(key) ~= "integer" or key < 1 or key > #self then
            core.raise("type", "ModuleList", ("there is no argument '%s'; give only modules: nn.ModuleList{a, b}"):format(key))
        end
    end
end

return containers
