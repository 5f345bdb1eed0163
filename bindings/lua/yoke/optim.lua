--- yoke.optim: optimizers, averages of parameters and schedules over those of the C API.
local core = require "yoke.core"
local options = require "yoke.options"
local tree = require "yoke.tree"
local read, meant, shown = options.read, options.meant, options.shown

local optim = {}

-- ---- Parameter groups --------------------------------------------------------------------------------

-- A group of optimizer.param_groups: options are read from the optimizer and written to it at once.
local Group = {}

-- Raises for an addition to a list without effect. A group's list is a copy of the optimizer's list.
local closed_list = { __newindex = function()
    core.raise("state", "param_groups", "an addition to this list has no effect on the optimizer; call optimizer:add_param_group{params = …}")
end }

function Group:__index(key)
    if key == "params" then
        local params = {}
        for i = 1, self.optimizer:param_count(self.number) do
            params[i] = self.optimizer:param(self.number, i - 1)
        end
        return setmetatable(params, closed_list)
    end
    return self.optimizer:options(self.number)[key]
end

function Group:__newindex(key, value)
    if key == "params" then
        core.raise("state", "param_groups", "the parameters of a group cannot be changed; add parameters by optimizer:add_param_group")
    end
    if value == nil then
        core.raise("value", "param_groups", "option '" .. tostring(key) .. "' cannot be removed; give it a value")
    end
    if self.optimizer:options(self.number)[key] == nil then
        core.raise("value", "param_groups", "a group has no option '" .. tostring(key) .. "'")
    end
    self.optimizer:set_options(self.number, { [key] = value })
end

-- ---- Optimizers ----------------------------------------------------------------------------------------

local Optimizer = {}
Optimizer.__index = Optimizer
Optimizer.__name = "yoke.optim.Optimizer"

-- Options of each kind with their defaults; false: no default, so the option must be given.
local sgd_defaults = { lr = false, momentum = 0, weight_decay = 0, nesterov = false, master_weights = false }
local adam_defaults = { lr = 1e-3, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = 0, master_weights = false }
local kinds = {
    SGD = sgd_defaults,
    Adam = adam_defaults,
    AdamW = setmetatable({ weight_decay = 1e-2 }, { __index = adam_defaults }),
}

local function check_options(kind, argument, options)
    if type(options) ~= "table" then
        core.raise("type", kind, ("argument '%s' is %s; it takes a table"):format(argument, shown(options)))
    end
    for name in pairs(options) do
        if kinds[kind][name] == nil and name ~= "params" then
            local known = {}
            for each in pairs(kind == "SGD" and sgd_defaults or adam_defaults) do known[#known + 1] = each end
            table.sort(known)
            core.raise("value", kind, ("there is no option '%s'%s; it takes %s"):format(tostring(name),
                meant(name, known), table.concat(known, ", ")))
        end
    end
end

-- Returns the defaults, overwritten by the group's own options.
local function merged(kind, defaults, group)
    local options = {}
    for name in pairs(kind == "SGD" and sgd_defaults or adam_defaults) do
        options[name] = group[name]
        if options[name] == nil then options[name] = defaults[name] end
    end
    return options
end

local function new(kind, params, options)
    options = options or {}
    check_options(kind, "options", options)
    if type(params) ~= "table" then
        core.raise("type", kind, ("argument 'params' is %s; it takes a list of tensors or of groups"):format(shown(params)))
    end
    local is_module = params.parameters ~= nil -- add_param_group refuses this with the right call, so lr is not required first
    if is_module then options = { lr = 1 } end
    if options.lr == nil and not kinds[kind].lr then core.raise("value", kind, "argument 'lr' is missing; give a learning rate") end
    local defaults = merged(kind, kinds[kind], options)
    local self = setmetatable({
        handle = core.optimizer(kind, defaults), kind = kind, defaults = defaults,
        param_groups = setmetatable({}, closed_list), given = 0, -- how many groups there should be
    }, Optimizer)
    local groups = not is_module and type(params[1]) == "table" and params or { { params = params } }
    for _, group in ipairs(groups) do self:add_param_group(group) end
    return self
end

--- SGD(params, {lr =, momentum = 0, weight_decay = 0, nesterov = false, master_weights = false}). `params` is a list of
--- tensors, or a list of groups {params = list, lr = ...} with options of their own.
function optim.SGD(params, options) return new("SGD", params, options) end

--- Adam(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, master_weights = false}).
function optim.Adam(params, options) return new("Adam", params, options) end

--- Adam with weight decay (1e-2) apart from the gradient.
function optim.AdamW(params, options) return new("AdamW", params, options) end

--- Adds a group {params = list, lr = ...}.
function Optimizer:add_param_group(group)
    check_options(self.kind, "group", group)
    local number = self.handle:group_count()
    self.handle:add_group(group.params, merged(self.kind, self.defaults, group))
    self.given = number + 1
    rawset(self.param_groups, number + 1, setmetatable({ optimizer = self.handle, number = number }, Group))
end

-- A group that was taken out of the list would be stepped all the same.
local function check_groups(self)
    for i = 1, self.given do
        if not self.param_groups[i] then
            core.raise("state", self.kind, "a group was removed from param_groups; make a new optimizer without this group")
        end
    end
end

function Optimizer:step()
    check_groups(self)
    self.handle:step()
end

--- Removes all gradients, or fills them with zeros: zero_grad{set_to_none = false}.
function Optimizer:zero_grad(options)
    check_groups(self)
    self.handle:zero_grad(options)
end

--- Sets the learning rate of one group (counted from 0), or of all.
function Optimizer:set_lr(lr, group) self.handle:set_lr(lr, group) end

function Optimizer:get_lr(group) return self.handle:get_lr(group) end

--- Drops parameters and state now; any later use is an error.
function Optimizer:close() self.handle:close() end
Optimizer.__close = Optimizer.close

--- {state = {[0] = {exp_avg = tensor, ...}, ...}, param_groups = {{lr = ..., params = {0, ...}}, ...}}, PyTorch's
--- layout: parameters are numbered from 0 through all groups. The tensors are the live ones: clone() what must stay.
function Optimizer:state_dict()
    check_groups(self)
    return tree.value(self.handle:state())
end

--- Takes copies of what state_dict gave, of an optimizer with the same groups; an error, and nothing changed, where it
--- does not fit: where groups, options or the states of a parameter are missing, left over or out of range.
function Optimizer:load_state_dict(dict)
    check_groups(self)
    self.handle:load_state(tree.of(dict, "load_state_dict", "dict"))
end

options.check_self(Optimizer, "optimizer")

-- ---- Averages of parameters ------------------------------------------------------------------------------

local EMA = {}
EMA.__index = EMA
EMA.__name = "yoke.optim.EMA"

--- optim.EMA(params, {decay = 0.999}): average = decay * average + (1 - decay) * parameter at each update(), over a
--- list of tensors; it begins as a copy.
function optim.EMA(params, ...)
    local decay = read("EMA", { { "decay", 0.999 } }, ...)
    return setmetatable({ handle = core.ema(params, decay), count = #params, decay = decay, depth = 0, swapped = false }, EMA)
end

--- Takes the parameters in, after a step of their optimizer.
function EMA:update() self.handle:update() end

--- Puts the averages into the parameters.
function EMA:copy_to_params() self.handle:copy_to_params() end

--- Puts the averages into the parameters, and the next time the parameters back: once before an evaluation, once after
--- it.
function EMA:swap()
    if self.depth > 0 then
        core.raise("state", "EMA.swap", "the scope of applied() is open and will restore the parameters; leave the scope first")
    end
    self.handle:swap()
    self.swapped = not self.swapped
end

-- The outermost applied() alone changes places, and only where swap() has not.
local function change_places(ema)
    if ema.depth == 0 and not ema.swapped then ema.handle:swap() end
end

-- Result of applied(): closing it, once, puts the parameters back.
local Applied = {}

function Applied:__close()
    local ema = self.ema
    if not ema then return end
    self.ema = nil
    ema.depth = ema.depth - 1
    change_places(ema)
end

--- Puts the averages into the parameters inside, and the parameters back afterwards. A nested call has no effect:
--- `local _ <close> = ema:applied()`, or ema:applied(fn), which returns fn's results.
function EMA:applied(fn)
    if fn ~= nil and type(fn) ~= "function" then
        core.raise("type", "EMA.applied", ("argument 'fn' is %s; it takes a function"):format(shown(fn)))
    end
    change_places(self)
    self.depth = self.depth + 1
    local scope = setmetatable({ ema = self }, Applied)
    if not fn then return scope end
    local _ <close> = scope
    return fn()
end

--- The averages, live, in the order of the parameters.
function EMA:averages()
    local list = {}
    for i = 1, self.count do list[i] = self.handle:average(i - 1) end
    return list
end

--- {decay =, averages = {tensor, ...}}; the tensors are the live ones.
function EMA:state_dict() return tree.value(self.handle:state()) end

--- Takes copies of state_dict's result, for the same number of parameters with the same shapes. If it does not fit,
--- raises an error and changes nothing.
function EMA:load_state_dict(dict)
    self.handle:load_state(tree.of(dict, "load_state_dict", "dict"))
    self.decay = dict.decay
end

function EMA:close() self.handle:close() end
EMA.__close = EMA.close
options.check_self(EMA, "ema")

optim.schedule = require "yoke.schedule"

return require "yoke.missing".module("optim", optim, { lr_scheduler = "yoke.lr_scheduler" })
