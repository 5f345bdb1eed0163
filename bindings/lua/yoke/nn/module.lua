--- Module, the base of every layer and network, and Parameter, its trained tensor; yoke.nn describes their use.
local core = require "yoke.core"
local hooks = require "yoke.nn.hooks"
local lists = require "yoke.nn.members"
local options = require "yoke.options"

local base = { is_module = lists.is_module }
local members, walk, collect = lists.of, lists.walk, lists.collect

local Module = { __name = "yoke.nn.Module", class_name = "Module" }
base.Module = Module

--- A subclass. Calling it makes an instance and runs init(...).
function Module:extend(class_name)
    local class = setmetatable({ class_name = class_name or self.class_name }, { __index = self, __call = self.new })
    class.instance = {
        __index = lists.make_index(class),
        __newindex = lists.newindex,
        __call = function(instance, ...)
            local own = members[instance]
            if own.is_around then return hooks.call(instance, own, ...) end
            options.refuse_more(instance.class_name .. ":forward", instance.forward, ...)
            return instance:forward(...)
        end,
        __tostring = self.describe,
        __len = self.length,
        __name = "yoke.nn.Module",
    }
    return class
end

function Module.new(class, ...)
    options.refuse_more(class.class_name, class.init, ...)
    local self = {}
    members[self] = { order = {}, kinds = {}, values = {}, plain = {}, transient = {} }
    setmetatable(self, class.instance)
    self.training = true
    self:init(...)
    return self
end

function Module:init() end

function Module:forward(...)
    core.raise("unsupported", self.class_name, "the module has no forward(); a module must define forward()")
end

-- Returns how many modules the list has: #list.
function Module:length()
    local count = 0
    for _ in self:children() do count = count + 1 end
    return count
end

--- A tensor that moves with the module but is not trained, such as a running mean. It is part of
--- state_dict(), unless {persistent = false}.
function Module:register_buffer(name, tensor, options)
    options = base.options("register_buffer", options, { persistent = true })
    if tensor ~= nil then base.need_tensor("register_buffer", tensor) end
    lists.add(self, "buffer", base.need_name("register_buffer", name), tensor, "register_buffer")
    members[self].transient[name] = not options.persistent
end

--- Registers a parameter, even if it does not require grad for now.
function Module:register_parameter(name, tensor)
    if tensor ~= nil then base.need_tensor("register_parameter", tensor) end
    lists.add(self, "parameter", base.need_name("register_parameter", name), tensor, "register_parameter")
end

-- Applies fn to inner modules first. `within` has the modules in progress: a module that holds itself is not entered
-- again.
local function apply(module, fn, within)
    within[module] = true
    for _, child in module:children() do
        if not within[child] then apply(child, fn, within) end
    end
    within[module] = nil
    fn(module)
end

--- Calls fn(module) for all inner modules and then for this module; returns the module.
function Module:apply(fn)
    apply(self, fn, {})
    return self
end

--- Training mode on or off, here and in all modules below; returns the module.
function Module:train(mode)
    self.training = mode ~= false
    for _, module in self:named_modules() do module.training = self.training end
    return self
end

function Module:eval() return self:train(false) end

--- Asks for gradients of all parameters, or no longer; returns the module.
function Module:requires_grad_(required)
    for _, parameter in self:named_parameters() do parameter:requires_grad_(required ~= false) end
    return self
end

--- From now on each call of this module is a yoke.checkpoint_scope{policy = policy, offload = offload}; returns the
--- module. false: no longer.
function Module:checkpoint_(policy, offload)
    local options = policy ~= false and { policy = policy ~= true and policy or nil, offload = offload } or nil
    if options then core.checkpoint_scope(options):close() end -- raises for wrong options now, not later
    members[self].checkpoint = options
    members[self].is_around = options ~= nil or members[self].hooks ~= nil
    return self
end

--- Forgets the gradients of all parameters, or fills them with zeros: zero_grad(false).
function Module:zero_grad(set_to_none)
    for _, parameter in self:named_parameters() do parameter:zero_grad(set_to_none ~= false) end
end

-- Returns a buffer moved and cast by x:to's arguments; whole numbers keep their dtype.
local function moved_to(value, ...)
    local there = value:detach():to(...)
    if not value.dtype:find "float" then there = value:to(there.device) end
    if there.dtype == value.dtype and core.shares_memory(there, value) then return value end
    return there
end

-- Moves a parameter itself by x:to_'s arguments.
local function move(value, ...)
    if value.dtype:find "float" then return value:to_(...) end
    local there <close> = core.zeros({ 0 }, { device = value.device }):to(...)
    return value:to_(there.device)
end

-- Returns to()'s arguments for x:to_, which always waits.
local function waiting(...)
    local place = ...
    if type(place) ~= "table" or place.non_blocking == nil then return ... end
    if type(place.non_blocking) ~= "boolean" then
        core.raise("type", "to", ("option 'non_blocking' is %s; it takes a boolean"):format(options.shown(place.non_blocking)))
    end
    local rest = {}
    for name, value in pairs(place) do
        if name ~= "non_blocking" then rest[name] = value end
    end
    return rest
end

--- Moves all parameters and buffers and casts floating tensors, by x:to_'s arguments or like a tensor; returns the
--- module. Parameters stay the same objects, buffers do not. Earlier records end. A parameter's move always waits.
function Module:to(...)
    local arguments, moved = table.pack(...), {}
    if core.is_tensor(arguments[1]) then return self:to(arguments[1].device, arguments[1].dtype) end
    walk(self, { parameter = true }, "", function(_, _, _, value)
        if not moved[value] then moved[value] = move(value, waiting(table.unpack(arguments, 1, arguments.n))) end
    end)
    walk(self, { buffer = true }, "", function(_, owner, name, value)
        moved[value] = moved[value] or moved_to(value, table.unpack(arguments, 1, arguments.n))
        members[owner].values[name] = moved[value]
    end)
    return self
end

--- Call to() with a floating dtype or the CPU.
function Module:half() return self:to "float16" end
function Module:bfloat16() return self:to "bfloat16" end
function Module:float() return self:to "float32" end
function Module:double() return self:to "float64" end
function Module:cpu() return self:to "cpu" end

--- Calls to() with a CUDA device: the current, the first, or the device of an index.
function Module:cuda(device)
    local there <close> = core.zeros({ 0 }, { device = "cpu" }):cuda(device)
    return self:to(there.device)
end

-- Returns the entries {name, value} of parameters and persistent buffers, under all their names.
local function state(call, module)
    local list = {}
    local function again(name)
        core.raise("value", call, ("the module '%s' contains itself, so the names of its tensors have no end"):format(name))
    end
    walk(module, { parameter = true, buffer = true }, "", function(full_name, owner, name, value)
        if not members[owner].transient[name] then list[#list + 1] = { full_name, value } end
    end, again)
    return list
end

--- {name = tensor} of all parameters and persistent buffers; the tensors share the module's memory.
function Module:state_dict()
    local dict = {}
    for _, entry in ipairs(state("state_dict", self)) do dict[entry[1]] = entry[2]:detach() end
    return dict
end

local function shape_text(x) return "[" .. table.concat(x.shape, ", ") .. "]" end

-- Returns why `given` cannot become the value of `own`, or nil.
local function misfit(name, given, own)
    if not core.is_tensor(given) then return ("%s is a %s, not a tensor"):format(name, type(given)) end
    if shape_text(given) ~= shape_text(own) then
        return ("'%s' in the state has shape %s; it must be %s. Load a state of the same network"):format(name, shape_text(given), shape_text(own))
    end
end

--- Copies the tensors of a state_dict into the module's own. Names must agree, unless {strict = false}. If any tensor
--- does not fit, nothing is changed. Returns lists of the missing and unexpected names.
function Module:load_state_dict(dict, options)
    local strict = base.options("load_state_dict", options, { strict = true }).strict
    base.entries("load_state_dict", "dict", dict, {})
    local own, wrong, missing, unexpected = {}, {}, {}, {}
    for _, entry in ipairs(state("load_state_dict", self)) do
        local name, value = entry[1], entry[2]
        own[name] = value
        if dict[name] == nil then
            missing[#missing + 1] = name
        else
            wrong[#wrong + 1] = misfit(name, dict[name], value)
        end
    end
    for name in pairs(dict) do
        if not own[name] then unexpected[#unexpected + 1] = tostring(name) end
    end
    table.sort(unexpected)
    if strict then
        for _, name in ipairs(missing) do wrong[#wrong + 1] = "missing " .. name end
        for i, name in ipairs(unexpected) do wrong[#wrong + 1] = "unexpected " .. name .. (i > 8 and "" or base.near(name, missing)) end
    end
    if #wrong > 0 then core.raise("value", "load_state_dict", "the state does not fit: " .. table.concat(wrong, "; ")) end
    core.no_grad(function()
        for name, tensor in pairs(own) do
            if dict[name] ~= nil then tensor:copy_(dict[name]) end
        end
    end)
    return missing, unexpected
end

--- Releases all parameters and buffers now instead of at some garbage collection.
function Module:close()
    for _, entry in ipairs(collect(self, { parameter = true, buffer = true })) do entry[2]:close() end
end

function Module:extra() return "" end
lists.add_to(Module)
hooks.add_to(Module)
Module.describe = require "yoke.nn.description"
options.check_self(Module, "module", base.is_module)

setmetatable(Module, {
    __call = function() core.raise("value", "Module", "nn.Module cannot be called; write nn.Module:extend(name)") end,
})

--- A leaf of its own with the values of `tensor`, to be trained.
function base.Parameter(tensor)
    local parameter = base.need_tensor("Parameter", tensor):detach():requires_grad_(true)
    lists.parameters[parameter] = true
    return parameter
end

-- ---- Arguments ------------------------------------------------------------------------------------------

base.none, base.options, base.read, base.entries, base.near = options.none, options.named, options.read, options.entries, options.near
base.need_tensor, base.need_name, base.positive = options.tensor, options.name, options.positive

return base
