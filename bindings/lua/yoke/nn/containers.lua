--- Modules that hold modules or parameters, in order or by key. In order, members are named "0", "1" …: list[0] is the
--- first, #list their number. A table of Lua has no order: by key, members are sorted by name. A list of pairs
--- {{name, member}, …} has an order.
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
    while self[tostring(count)] ~= nil do count = count + 1 end -- named modules
    self[tostring(count)] = module
    return self
end

-- Returns the list {{name, value}, …} that a table of entries by name means, sorted by name; a list of pairs stays.
local function pairs_of(call, what, given)
    local found = {}
    if #given > 0 then
        for i, pair in ipairs(given) do
            if type(pair) ~= "table" or getmetatable(pair) or #pair ~= 2 then
                core.raise("type", call, ("entry %d is %s; it takes pairs of a name and %s"):format(i - 1, options.shown(pair), what))
            end
            found[i] = pair
        end
        return found
    end
    for name, value in pairs(given) do found[#found + 1] = { tostring(name), value } end
    table.sort(found, function(a, b) return a[1] < b[1] end)
    return found
end

local function need_table(call, name, what, given)
    if given ~= nil and (type(given) ~= "table" or getmetatable(given)) then
        core.raise("type", call, ("argument '%s' is %s; it takes a table of %s"):format(name, options.shown(given), what))
    end
    return given or {}
end

local function add_named(module, call, given)
    for _, pair in ipairs(pairs_of(call, "a module", given)) do
        if not base.is_module(pair[2]) then
            core.raise("type", call, ("entry '%s' is %s; it takes a module"):format(pair[1], options.shown(pair[2])))
        end
        module:add_module(pair[1], pair[2])
    end
end

--- nn.Sequential(a, b, ...): each module's result is the next one's argument. nn.Sequential{{"up", a}, {"out", b}}
--- gives names.
containers.Sequential = Ordered:extend("Sequential")

function containers.Sequential:init(...)
    local first = ...
    if select("#", ...) == 1 and type(first) == "table" and not getmetatable(first) and #first > 0 then return add_named(self, "Sequential", first) end
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

--- nn.ModuleDict{a = module, …}, or a list of pairs: modules by key, for a forward() of one's own: self.heads.a(x),
--- self.heads[key](x). An assignment adds a module, nil removes it; heads:children() goes through all.
containers.ModuleDict = base.Module:extend("ModuleDict")

function containers.ModuleDict:init(modules)
    add_named(self, "ModuleDict", need_table("ModuleDict", "modules", "modules", modules))
end

-- Makes #list count the parameters of a class, also of its subclasses.
local function count_parameters(class)
    function class:length()
        local count = 0
        for _ in self:named_parameters() do count = count + 1 end
        return count
    end
    class.instance.__len = class.length
end

local function parameter_of(call, name, value)
    if not core.is_tensor(value) then
        core.raise("type", call, ("entry %s is %s; it takes a tensor"):format(name, options.shown(value)))
    end
    return value.is_leaf and value.requires_grad and value or base.Parameter(value)
end

--- nn.ParameterList{a, b, …}: parameters in order, list[0] is the first; a plain tensor becomes a Parameter.
containers.ParameterList = base.Module:extend("ParameterList")
count_parameters(containers.ParameterList)

function containers.ParameterList:init(values)
    for _, value in ipairs(need_table("ParameterList", "values", "tensors", values)) do self:append(value) end
end

--- Adds a parameter at the end; returns the list.
function containers.ParameterList:append(value)
    local count = self:length()
    self:register_parameter(tostring(count), parameter_of("ParameterList", count, value))
    return self
end

--- nn.ParameterDict{a = tensor, …}, or a list of pairs: parameters by key; a plain tensor becomes a Parameter.
containers.ParameterDict = base.Module:extend("ParameterDict")
count_parameters(containers.ParameterDict)

function containers.ParameterDict:init(parameters)
    for _, pair in ipairs(pairs_of("ParameterDict", "a tensor", need_table("ParameterDict", "parameters", "tensors", parameters))) do
        self:register_parameter(pair[1], parameter_of("ParameterDict", ("'%s'"):format(pair[1]), pair[2]))
    end
end

return containers
