--- yoke.nn: layers in plain Lua. A class of one's own:
---
---     local Net = nn.Module:extend("Net")
---     function Net:init(width)
---         self.hidden = nn.Linear(784, width)
---         self.out = nn.Linear(width, 10)
---     end
---     function Net:forward(x) return self.out(self.hidden(x):relu()) end
---     local net = Net(512)
---
--- A tensor that requires grad, or a module, becomes a member when it is assigned; members keep the order
--- of their first assignment. parameters() lists a module's own first, then those of the modules in it.
local core = require "yoke.core"

local nn = {}

-- ---- Module --------------------------------------------------------------------------------------------

local Module = { __name = "yoke.nn.Module", class_name = "Module" }
nn.Module = Module

-- What a module holds beside its plain fields, so that classes cannot collide with it.
local members = setmetatable({}, { __mode = "k" })

local function is_module(value) return type(value) == "table" and members[value] ~= nil end

local function is_parameter(value)
    return core.is_tensor(value) and not value:is_closed() and value.requires_grad and value.is_leaf
end

local function add_member(self, kind, name, value)
    local own = members[self]
    if not own.kinds[name] then own.order[#own.order + 1] = name end
    own.kinds[name], own.values[name] = kind, value
    rawset(self, name, nil)
end

-- Instances look into their members, then their class.
local function make_index(class)
    return function(self, name)
        local value = members[self].values[name]
        if value == nil then return class[name] end
        return value
    end
end

local function newindex(self, name, value)
    local kind = members[self].kinds[name]
    if is_module(value) then
        add_member(self, "module", name, value)
    elseif is_parameter(value) then
        add_member(self, "parameter", name, value)
    elseif kind then
        add_member(self, kind, name, value) -- of whatever type: nil takes a member out of use
    else
        rawset(self, name, value)
    end
end

--- A subclass. Calling it makes an instance and runs init(...).
function Module:extend(class_name)
    local class = setmetatable({ class_name = class_name or self.class_name }, { __index = self, __call = self.new })
    class.instance = {
        __index = make_index(class),
        __newindex = newindex,
        __call = function(instance, ...) return instance:forward(...) end,
        __tostring = self.describe,
        __name = "yoke.nn.Module",
    }
    return class
end

function Module.new(class, ...)
    local self = {}
    members[self] = { order = {}, kinds = {}, values = {} }
    setmetatable(self, class.instance)
    self.training = true
    self:init(...)
    return self
end

function Module:init() end

function Module:forward()
    core.raise("unsupported", self.class_name, "it has no forward(); a module must define one")
end

--- A tensor that is saved and moved with the module but not trained.
function Module:register_buffer(name, tensor) add_member(self, "buffer", name, tensor) end

--- A parameter, even one that does not require grad for now.
function Module:register_parameter(name, tensor) add_member(self, "parameter", name, tensor) end

-- Calls visit(full name, owner, name, value) for each member of the kinds: a module's own in order, then
-- those of the modules below it, depth first.
local function walk(module, kinds, prefix, visit)
    local own = members[module]
    for _, name in ipairs(own.order) do
        if own.values[name] ~= nil and kinds[own.kinds[name]] and own.kinds[name] ~= "module" then
            visit(prefix .. name, module, name, own.values[name])
        end
    end
    for _, name in ipairs(own.order) do
        local value = own.values[name]
        if own.kinds[name] == "module" and value ~= nil then
            if kinds.module then visit(prefix .. name, module, name, value) end
            walk(value, kinds, prefix .. name .. ".", visit)
        end
    end
end

-- The entries {name, value} of a kind, each value once.
local function collect(module, kinds)
    local list, seen = {}, {}
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

--- for name, buffer in net:named_buffers() do ... end
function Module:named_buffers() return iterate(collect(self, { buffer = true })) end

--- for name, module in net:named_modules() do ... end; not the module itself.
function Module:named_modules() return iterate(collect(self, { module = true })) end

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

--- Forgets the gradients of all parameters.
function Module:zero_grad()
    for _, parameter in self:named_parameters() do parameter:zero_grad() end
end

--- Moves and casts all parameters and buffers, by x:to's arguments; returns the module. A parameter that
--- changes becomes a new tensor: make the optimizer afterwards.
function Module:to(...)
    local arguments, moved = table.pack(...), {}
    walk(self, { parameter = true, buffer = true }, "", function(_, owner, name, value)
        if not moved[value] then
            local there = value:detach():to(table.unpack(arguments, 1, arguments.n))
            local same = there.dtype == value.dtype and core.shares_memory(there, value)
            moved[value] = same and value or there:requires_grad_(value.requires_grad)
        end
        members[owner].values[name] = moved[value]
    end)
    return self
end

--- {name = tensor} of all parameters and buffers; the tensors share the module's memory.
function Module:state_dict()
    local dict = {}
    for _, entry in ipairs(collect(self, { parameter = true, buffer = true })) do
        dict[entry[1]] = entry[2]:detach()
    end
    return dict
end

local function same_shape(a, b) return table.concat(a.shape, ",") == table.concat(b.shape, ",") end

--- Copies the tensors of a state_dict into the module's own. Unless {strict = false}, names must agree.
--- Nothing is changed unless all of it fits.
function Module:load_state_dict(dict, options)
    local strict = not options or options.strict ~= false
    local own, wrong = {}, {}
    for _, entry in ipairs(collect(self, { parameter = true, buffer = true })) do
        own[entry[1]] = entry[2]
        local given = dict[entry[1]]
        if given and not same_shape(given, entry[2]) then
            wrong[#wrong + 1] = ("%s is [%s] and not [%s]"):format(entry[1], table.concat(given.shape, ", "),
                table.concat(entry[2].shape, ", "))
        elseif strict and not given then
            wrong[#wrong + 1] = "missing " .. entry[1]
        end
    end
    for name in pairs(dict) do
        if strict and not own[name] then wrong[#wrong + 1] = "unexpected " .. tostring(name) end
    end
    if #wrong > 0 then
        table.sort(wrong)
        core.raise("value", "load_state_dict", "it does not fit: " .. table.concat(wrong, ", "))
    end
    core.no_grad(function()
        for name, tensor in pairs(own) do
            if dict[name] ~= nil then tensor:copy_(dict[name]) end
        end
    end)
end

--- Releases all parameters and buffers now instead of at some garbage collection.
function Module:close()
    for _, entry in ipairs(collect(self, { parameter = true, buffer = true })) do entry[2]:close() end
end

function Module:extra() return "" end

function Module:describe()
    local own, lines = members[self], {}
    for _, name in ipairs(own.order) do
        if own.kinds[name] == "module" and own.values[name] ~= nil then
            lines[#lines + 1] = "  (" .. name .. "): " .. tostring(own.values[name]):gsub("\n", "\n  ")
        end
    end
    if #lines == 0 then return self.class_name .. "(" .. self:extra() .. ")" end
    return self.class_name .. "(\n" .. table.concat(lines, "\n") .. "\n)"
end

setmetatable(Module, {
    __call = function() core.raise("value", "Module", "it is not called but extended: nn.Module:extend(name)") end,
})

-- ---- Layers ----------------------------------------------------------------------------------------------

--- A leaf of its own with the values of `tensor`, to be trained.
function nn.Parameter(tensor) return tensor:detach():requires_grad_(true) end

--- nn.Linear(in_features, out_features, {bias = true, dtype =, device =}): x times weight transposed, plus
--- bias. Both start uniform in ±1/√in_features; weight is drawn before bias.
nn.Linear = Module:extend("Linear")

function nn.Linear:init(in_features, out_features, options)
    options = options or {}
    if math.type(in_features) ~= "integer" or math.type(out_features) ~= "integer"
        or in_features < 1 or out_features < 1 then
        core.raise("value", "Linear", ("in_features is %s and out_features %s; both must be integers of 1 or more")
            :format(in_features, out_features))
    end
    self.in_features, self.out_features = in_features, out_features
    local bound = 1 / math.sqrt(in_features)
    local function uniform(shape)
        local x = core.rand(shape, { dtype = options.dtype, device = options.device })
        return nn.Parameter(x * (2 * bound) - bound)
    end
    self.weight = uniform { out_features, in_features }
    if options.bias ~= false then self.bias = uniform { out_features } end
end

function nn.Linear:forward(x) return core.linear(x, self.weight, self.bias) end

function nn.Linear:extra()
    return ("in_features=%d, out_features=%d, bias=%s"):format(self.in_features, self.out_features, self.bias ~= nil)
end

--- max(x, 0).
nn.ReLU = Module:extend("ReLU")

function nn.ReLU:forward(x) return core.relu(x) end

--- nn.GELU{approximate = "none"}: "tanh" is the faster formula.
nn.GELU = Module:extend("GELU")

function nn.GELU:init(options) self.approximate = options and options.approximate or "none" end

function nn.GELU:forward(x) return core.gelu(x, self.approximate) end

function nn.GELU:extra() return 'approximate="' .. self.approximate .. '"' end

--- Hyperbolic tangent.
nn.Tanh = Module:extend("Tanh")

function nn.Tanh:forward(x) return core.tanh(x) end

--- nn.Softmax(axis = -1) and nn.LogSoftmax(axis = -1).
nn.Softmax = Module:extend("Softmax")
nn.LogSoftmax = Module:extend("LogSoftmax")

function nn.Softmax:init(axis) self.axis = axis or -1 end

nn.LogSoftmax.init = nn.Softmax.init

function nn.Softmax:forward(x) return core.softmax(x, self.axis) end

function nn.LogSoftmax:forward(x) return core.log_softmax(x, self.axis) end

--- Joins all axes but the first: [N, …] becomes [N, rest].
nn.Flatten = Module:extend("Flatten")

function nn.Flatten:forward(x)
    local shape, rest = x.shape, 1
    for i = 2, #shape do rest = rest * shape[i] end
    return core.reshape(x, { shape[1], rest })
end

--- nn.CrossEntropyLoss{reduction = "mean", ignore_index = -100, label_smoothing = 0}: loss(logits, target).
nn.CrossEntropyLoss = Module:extend("CrossEntropyLoss")

function nn.CrossEntropyLoss:init(options) self.options = options or {} end

function nn.CrossEntropyLoss:forward(x, target) return core.cross_entropy(x, target, self.options) end

--- nn.Dropout(p = 0.5): zeroes elements while training.
nn.Dropout = Module:extend("Dropout")

function nn.Dropout:init(p)
    self.p = p or 0.5
    if type(self.p) ~= "number" or not (self.p >= 0 and self.p <= 1) then
        core.raise("value", "Dropout", ("p is %s; a probability lies between 0 and 1"):format(self.p))
    end
end

function nn.Dropout:forward(x) return core.dropout(x, self.p, self.training) end

function nn.Dropout:extra() return "p=" .. self.p end

--- nn.Sequential(a, b, ...): each module's result is the next one's argument. Members are named "0", "1" …
nn.Sequential = Module:extend("Sequential")

function nn.Sequential:init(...)
    self.layers = table.pack(...)
    for i, layer in ipairs(self.layers) do
        if not is_module(layer) then
            core.raise("type", "Sequential", "argument " .. i - 1 .. " is a " .. type(layer) .. "; it takes modules")
        end
        self[tostring(i - 1)] = layer
    end
end

function nn.Sequential:forward(x)
    for _, layer in ipairs(self.layers) do x = layer(x) end
    return x
end

return nn
