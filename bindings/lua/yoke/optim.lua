--- yoke.optim: optimizers, averages of parameters and schedules over those of the C API.
local core = require "yoke.core"
local options = require "yoke.options"
local read, meant = options.read, options.meant

local optim = {}

-- ---- Parameter groups --------------------------------------------------------------------------------

-- A group of optimizer.param_groups: options are read from the optimizer and written to it at once.
local Group = {}

-- What would be added to a list in vain is an error. A group's list is a copy of the optimizer's own.
local closed_list = { __newindex = function()
    core.raise("state", "param_groups", "what is added here reaches no optimizer; use optimizer:add_param_group{params = …}")
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
        core.raise("state", "param_groups", "a group keeps its parameters; others come with optimizer:add_param_group")
    end
    if value == nil then
        core.raise("value", "param_groups", "option '" .. tostring(key) .. "' cannot be taken away, only changed")
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

-- The options of each kind with their defaults; false: there is none, and it must be given.
local sgd_defaults = { lr = false, momentum = 0, weight_decay = 0, nesterov = false, master_weights = false }
local adam_defaults = { lr = 1e-3, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = 0, master_weights = false }
local kinds = {
    SGD = sgd_defaults,
    Adam = adam_defaults,
    AdamW = setmetatable({ weight_decay = 1e-2 }, { __index = adam_defaults }),
}

local function check_options(kind, argument, options)
    if type(options) ~= "table" then
        core.raise("type", kind, ("argument '%s' is a %s; it takes a table"):format(argument, type(options)))
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

-- The defaults, with what a group itself says laid over them.
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
    if options.lr == nil and not kinds[kind].lr then core.raise("value", kind, "argument 'lr' is missing") end
    if type(params) ~= "table" then
        core.raise("type", kind, "argument 'params' is a " .. type(params) .. "; it takes a list of tensors or of groups")
    end
    local defaults = merged(kind, kinds[kind], options)
    local self = setmetatable({
        handle = core.optimizer(kind, defaults), kind = kind, defaults = defaults,
        param_groups = setmetatable({}, closed_list), given = 0, -- how many groups there should be
    }, Optimizer)
    local groups = type(params[1]) == "table" and params or { { params = params } }
    for _, group in ipairs(groups) do self:add_param_group(group) end
    return self
end

--- SGD(params, {lr =, momentum = 0, weight_decay = 0, nesterov = false, master_weights = false}). `params` is a list of
--- tensors, or a list of groups {params = list, lr = ...} with options of their own.
function optim.SGD(params, options) return new("SGD", params, options) end

--- Adam(params, {lr = 1e-3, betas = {0.9, 0.999}, eps = 1e-8, weight_decay = 0, master_weights = false}).
function optim.Adam(params, options) return new("Adam", params, options) end

--- The same with weight decay (1e-2) apart from the gradient.
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
            core.raise("state", self.kind, "a group was taken out of param_groups; a new optimizer can do without it")
        end
    end
end

function Optimizer:step()
    check_groups(self)
    self.handle:step()
end

--- Forgets all gradients, or fills them with zeros: zero_grad{set_to_none = false}.
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

--- {groups = {options ...}, state = {{momentum = tensor} ...}} with one entry of state for each parameter
--- in order; the tensors are copies.
function Optimizer:state_dict()
    check_groups(self)
    local dict, names = { groups = {}, state = {} }, self.handle:state_names()
    for number = 0, self.handle:group_count() - 1 do
        dict.groups[number + 1] = self.handle:options(number)
        for index = 0, self.handle:param_count(number) - 1 do
            local entry = {}
            for _, name in ipairs(names) do
                local state = self.handle:get_state(number, index, name)
                entry[name] = state and state:clone()
            end
            dict.state[#dict.state + 1] = entry
        end
    end
    return dict
end

local function put(self, dict)
    local at, names = 1, self.handle:state_names()
    for number = 0, self.handle:group_count() - 1 do
        self.handle:set_options(number, dict.groups[number + 1])
        for index = 0, self.handle:param_count(number) - 1 do
            for _, name in ipairs(names) do self.handle:set_state(number, index, name, dict.state[at][name]) end
            at = at + 1
        end
    end
end

local load_call = "load_state_dict"

local function check_saved_options(self, number, saved)
    local own, names = self.handle:options(number), {}
    for name in pairs(own) do names[#names + 1] = name end
    table.sort(names)
    options.entries(load_call, ("groups[%d]"):format(number + 1), saved, names)
    for name, value in pairs(saved) do
        if own[name] == nil and value ~= false then
            core.raise("value", load_call, ("group %d of the state has the option '%s', %s, which %s lacks: it has %s; load the state into the kind of optimizer that saved it"):format(number, name, options.shown(value), self.kind,
                table.concat(names, ", ")))
        end
    end
    return own.master_weights
end

-- States that begin as zeros with the next step where there are none.
local may_lack = { momentum = true }

-- What keeps the optimizer from going on with the saved state of one parameter; none at all was never stepped.
local function check_saved_state(kind, place, saved, names, has_master)
    local needed, known = {}, {}
    for _, name in ipairs(names) do
        known[name] = true
        if name == "master" and has_master or name ~= "master" and not may_lack[name] then needed[#needed + 1] = name end
    end
    for name, value in pairs(saved) do
        if not known[name] then
            core.raise("value", load_call, ("%s has a state '%s', %s, which %s lacks: it has %s; load the state into the kind of optimizer that saved it"):format(place, name, options.shown(value), kind, table.concat(names, ", ")))
        elseif not core.is_tensor(value) then
            core.raise("type", load_call, ("state '%s' of %s is %s; it takes a tensor, as state_dict() gave it")
                :format(name, place, options.shown(value)))
        end
    end
    for _, name in ipairs(needed) do
        if next(saved) ~= nil and saved[name] == nil then
            core.raise("value", load_call, ("%s has a state without '%s'; %s needs %s; save it with all of them, or give an empty table to begin that parameter anew"):format(place, name, kind, table.concat(needed, ", ")))
        end
    end
end

local halves = { float16 = true, bfloat16 = true }

local function check_saved(self, dict)
    local at, names = 1, self.handle:state_names()
    for number = 0, self.handle:group_count() - 1 do
        local masters = check_saved_options(self, number, dict.groups[number + 1])
        for index = 0, self.handle:param_count(number) - 1 do
            local saved = options.entries(load_call, ("state[%d]"):format(at), dict.state[at], {})
            check_saved_state(self.kind, ("parameter %d of group %d"):format(index, number), saved, names,
                masters and halves[self.handle:param(number, index).dtype])
            at = at + 1
        end
    end
end

--- Takes what state_dict gave, of an optimizer with the same groups; an error, and nothing changed, where it does not
--- fit: where groups, options or the states of a parameter are missing, left over or out of range.
function Optimizer:load_state_dict(dict)
    options.entries(load_call, "dict", dict, { "groups", "state" })
    options.entries(load_call, "groups", dict.groups, {})
    options.entries(load_call, "state", dict.state, {})
    local groups = self.handle:group_count()
    if #dict.groups ~= groups then
        core.raise("value", load_call, ("%d groups for an optimizer with %d"):format(#dict.groups, groups))
    end
    local total = 0
    for number = 0, groups - 1 do total = total + self.handle:param_count(number) end
    if #dict.state ~= total then
        core.raise("value", load_call,
            ("state of %d parameters for an optimizer with %d"):format(#dict.state, total))
    end
    check_saved(self, dict)
    local before = self:state_dict()
    local ok, failure = pcall(put, self, dict)
    if not ok then
        put(self, before)
        error(failure, 0)
    end
end

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
        core.raise("state", "EMA.swap", "applied() will put the parameters back; leave it first")
    end
    self.handle:swap()
    self.swapped = not self.swapped
end

-- The outermost applied() alone changes places, and only where swap() has not.
local function change_places(ema)
    if ema.depth == 0 and not ema.swapped then ema.handle:swap() end
end

-- What applied() gives: closing it, once, puts the parameters back.
local Applied = {}

function Applied:__close()
    local ema = self.ema
    if not ema then return end
    self.ema = nil
    ema.depth = ema.depth - 1
    change_places(ema)
end

--- The parameters are the averages inside, and themselves again after it; inside itself it changes nothing:
--- `local _ <close> = ema:applied()`, or ema:applied(fn), which returns what fn returns.
function EMA:applied(fn)
    if fn ~= nil and type(fn) ~= "function" then
        core.raise("type", "EMA.applied", "argument 'fn' must be a function, not a " .. type(fn))
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

function EMA:close() self.handle:close() end
EMA.__close = EMA.close

optim.schedule = require "yoke.schedule"

return optim
