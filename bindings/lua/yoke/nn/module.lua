--- Module, the base of every layer and network, and Parameter, its trained tensor; yoke.nn describes their use.
local core = require "yoke.core"
local options = require "yoke.options"

local base = {}

local Module = { __name = "yoke.nn.Module", class_name = "Module" }
base.Module = Module

-- Members and plain values of each module. A module's own table stays empty, because Lua only reports the assignment
-- to an absent field: a module assigned over a plain value must become a member.
local members = setmetatable({}, { __mode = "k" })

-- Tensors that have been parameters: a frozen parameter is still a parameter.
local parameters = setmetatable({}, { __mode = "k" })

function base.is_module(value) return type(value) == "table" and members[value] ~= nil end

local function is_parameter(value)
    return core.is_tensor(value) and not value:is_closed() and value.is_leaf and (value.requires_grad or parameters[value] == true)
end

-- A number names a member of a container: list[0].
local function key_of(name) return math.type(name) == "integer" and tostring(name) or name end

local function add_member(self, kind, name, value, call)
    local own = members[self]
    local taken = own.values[name] ~= nil and own.kinds[name] ~= kind and own.kinds[name]
    if call and taken then core.raise("value", call, ("'%s' is a %s of this module; assign nil to it first"):format(name, taken)) end
    if not own.kinds[name] then own.order[#own.order + 1] = name end
    own.kinds[name], own.values[name], own.plain[name] = kind, value, nil
    if kind == "parameter" and value ~= nil then parameters[value] = true end
end

-- Returns an index function: instances look into their members and plain fields, then their class.
local function make_index(class)
    return function(self, name)
        local own = members[self]
        name = key_of(name)
        local value = own.values[name]
        if value == nil then value = own.plain[name] end
        if value == nil then return class[name] end
        return value
    end
end

local wanted = { parameter = "for a trained parameter assign nn.Parameter(tensor); for any other leaf call module:register_parameter(name, tensor); for new values call yoke.no_grad(function() %s:copy_(tensor) end)",
    module = "assign a module, or nil first", buffer = "assign a tensor, or nil first" }

-- Raises for a value that would take a parameter, buffer or module out of states and optimizers.
local function refuse(self, kind, name, value)
    core.raise("type", self.class_name, ("cannot assign %s as %s '%s'; %s"):format(options.shown(value), kind, tostring(name),
        wanted[kind]:format("module." .. tostring(name))))
end

-- Keeps a value as PyTorch does: a parameter replaces anything, and no other tensor replaces a parameter.
local function newindex(self, name, value)
    local own = members[self]
    name = key_of(name)
    local kind = own.kinds[name]
    if kind == "module" and own.values[name] == nil then kind = nil end
    if is_parameter(value) then
        add_member(self, "parameter", name, value)
    elseif kind and value == nil or kind == "buffer" and core.is_tensor(value) then
        add_member(self, kind, name, value) -- nil: out of use
    elseif kind == "parameter" then
        refuse(self, kind, name, value)
    elseif base.is_module(value) then
        add_member(self, "module", name, value)
    elseif kind then
        refuse(self, kind, name, value)
    else
        own.plain[name] = value
    end
end

--- A subclass. Calling it makes an instance and runs init(...).
function Module:extend(class_name)
    local class = setmetatable({ class_name = class_name or self.class_name }, { __index = self, __call = self.new })
    class.instance = {
        __index = make_index(class),
        __newindex = newindex,
        __call = function(instance, ...)
            options.refuse_more(instance.class_name .. ":forward", instance.forward, ...)
            if not members[instance].checkpoint then return instance:forward(...) end
            return core.checkpoint(members[instance].checkpoint, instance.forward, instance, ...)
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
    add_member(self, "buffer", base.need_name("register_buffer", name), tensor, "register_buffer")
    members[self].transient[name] = not options.persistent
end

--- Registers a parameter, even if it does not require grad for now.
function Module:register_parameter(name, tensor)
    if tensor ~= nil then base.need_tensor("register_parameter", tensor) end
    add_member(self, "parameter", base.need_name("register_parameter", name), tensor, "register_parameter")
end

-- Calls visit(full name, owner, name, value) for each member of the kinds: a module's own in order, then the members
-- of its inner modules, depth first. Each module is entered once. With again(full name), each module is entered under
-- every name; again is called if a module would be entered from within itself.
local function walk(module, kinds, prefix, visit, again, entered)
    local own = members[module]
    entered = entered or {}
    entered[module] = true
    for _, name in ipairs(own.order) do
        if own.values[name] ~= nil and kinds[own.kinds[name]] and own.kinds[name] ~= "module" then
            visit(prefix .. name, module, name, own.values[name])
        end
    end
    for _, name in ipairs(own.order) do
        local value = own.values[name]
        if own.kinds[name] == "module" and value ~= nil then
            if kinds.module then visit(prefix .. name, module, name, value) end
            if not entered[value] then
                walk(value, kinds, prefix .. name .. ".", visit, again, entered)
            elseif again then
                again(prefix .. name)
            end
        end
    end
    if again then entered[module] = nil end
end

-- The entries {name, value} of a kind, each value once.
local function collect(module, kinds)
    local list, seen = {}, { [module] = true }
    walk(module, kinds, "", function(full_name, _, _, value)
        if not seen[value] then
            seen[value] = true
            list[#list + 1] = { full_name, value }
        end
    end)
    return list
end

local function iterate(list)
    local i = 0
    return function()
        i = i + 1
        if list[i] then return list[i][1], list[i][2] end
    end
end

--- A list of all parameters, as an optimizer takes it.
function Module:parameters()
    local list = {}
    for i, entry in ipairs(collect(self, { parameter = true })) do list[i] = entry[2] end
    return list
end

--- for name, parameter in net:named_parameters() do ... end
function Module:named_parameters() return iterate(collect(self, { parameter = true })) end

--- A list of all buffers.
function Module:buffers()
    local list = {}
    for i, entry in ipairs(collect(self, { buffer = true })) do list[i] = entry[2] end
    return list
end

--- for name, buffer in net:named_buffers() do ... end
function Module:named_buffers() return iterate(collect(self, { buffer = true })) end

--- for name, module in net:named_modules() do ... end; not the module itself.
function Module:named_modules() return iterate(collect(self, { module = true })) end

--- for name, module in net:children() do ... end; direct children, in order.
function Module:children()
    local own, list = members[self], {}
    for _, name in ipairs(own.order) do
        if own.kinds[name] == "module" and own.values[name] ~= nil then list[#list + 1] = { name, own.values[name] } end
    end
    return iterate(list)
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
Module.describe = require "yoke.nn.description"
options.check_self(Module, "module", base.is_module)

setmetatable(Module, {
    __call = function() core.raise("value", "Module", "nn.Module cannot be called; write nn.Module:extend(name)") end,
})

--- A leaf of its own with the values of `tensor`, to be trained.
function base.Parameter(tensor)
    local parameter = base.need_tensor("Parameter", tensor):detach():requires_grad_(true)
    parameters[parameter] = true
    return parameter
end

-- ---- Arguments ------------------------------------------------------------------------------------------

base.none, base.options, base.read, base.entries, base.near = options.none, options.named, options.read, options.entries, options.near
base.need_tensor, base.need_name, base.positive = options.tensor, options.name, options.positive

return base
