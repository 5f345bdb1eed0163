--- yoke.optim: optimizers and learning-rate schedules over the optimizers of the C API.
local core = require "yoke.core"

local optim = {}

-- ---- Parameter groups --------------------------------------------------------------------------------

-- A group of optimizer.param_groups: options are read from the optimizer and written to it at once.
local Group = {}

function Group:__index(key)
    if key == "params" then
        local params = {}
        for i = 1, self.optimizer:param_count(self.number) do
            params[i] = self.optimizer:param(self.number, i - 1)
        end
        return params
    end
    return self.optimizer:options(self.number)[key]
end

function Group:__newindex(key, value)
    if self.optimizer:options(self.number)[key] == nil then
        core.raise("value", "param_groups", "a group has no option '" .. tostring(key) .. "'")
    end
    self.optimizer:set_options(self.number, { [key] = value })
end

-- ---- Stochastic gradient descent -----------------------------------------------------------------------

local SGD = {}
SGD.__index = SGD
SGD.__name = "yoke.optim.SGD"

local option_names = { lr = true, momentum = true, weight_decay = true, nesterov = true }

local function check_options(options)
    for name in pairs(options) do
        if not option_names[name] and name ~= "params" then
            core.raise("value", "SGD", "there is no option '" .. tostring(name)
                .. "'; it takes lr, momentum, weight_decay and nesterov")
        end
    end
end

-- The defaults of the optimizer, with what the group itself says laid over them.
local function merged(defaults, group)
    local options = {}
    for name in pairs(option_names) do
        options[name] = group[name]
        if options[name] == nil then options[name] = defaults[name] end
    end
    return options
end

--- SGD(params, {lr =, momentum = 0, weight_decay = 0, nesterov = false}). `params` is a list of tensors,
--- or a list of groups {params = list, lr = ...} with options of their own.
function optim.SGD(params, options)
    options = options or {}
    check_options(options)
    if options.lr == nil then core.raise("value", "SGD", "argument 'lr' is missing") end
    if type(params) ~= "table" then
        core.raise("type", "SGD", "argument 'params' is a " .. type(params)
            .. "; it takes a list of tensors or of groups")
    end
    local self = setmetatable({ handle = core.sgd(options), defaults = options, param_groups = {} }, SGD)
    local groups = type(params[1]) == "table" and params or { { params = params } }
    for _, group in ipairs(groups) do self:add_param_group(group) end
    return self
end

--- Adds a group {params = list, lr = ...}.
function SGD:add_param_group(group)
    check_options(group)
    local number = self.handle:group_count()
    self.handle:add_group(group.params, merged(self.defaults, group))
    self.param_groups[number + 1] = setmetatable({ optimizer = self.handle, number = number }, Group)
end

function SGD:step() self.handle:step() end

--- Forgets all gradients, or fills them with zeros: zero_grad{set_to_none = false}.
function SGD:zero_grad(options) self.handle:zero_grad(options) end

--- Sets the learning rate of one group (counted from 0), or of all.
function SGD:set_lr(lr, group) self.handle:set_lr(lr, group) end

function SGD:get_lr(group) return self.handle:get_lr(group) end

--- Drops parameters and state now; any later use is an error.
function SGD:close() self.handle:close() end
SGD.__close = SGD.close

--- {groups = {options ...}, state = {{momentum = tensor} ...}} with one entry of state for each parameter
--- in order; the tensors are copies.
function SGD:state_dict()
    local dict = { groups = {}, state = {} }
    for number = 0, self.handle:group_count() - 1 do
        dict.groups[number + 1] = self.handle:options(number)
        for index = 0, self.handle:param_count(number) - 1 do
            local momentum = self.handle:get_state(number, index, "momentum")
            dict.state[#dict.state + 1] = { momentum = momentum and momentum:clone() }
        end
    end
    return dict
end

--- Takes what state_dict gave, of an optimizer with the same groups.
function SGD:load_state_dict(dict)
    local groups = self.handle:group_count()
    if #dict.groups ~= groups then
        core.raise("value", "load_state_dict", ("%d groups for an optimizer with %d"):format(#dict.groups, groups))
    end
    local total = 0
    for number = 0, groups - 1 do total = total + self.handle:param_count(number) end
    if #dict.state ~= total then
        core.raise("value", "load_state_dict",
            ("state of %d parameters for an optimizer with %d"):format(#dict.state, total))
    end
    local at = 1
    for number = 0, groups - 1 do
        self.handle:set_options(number, dict.groups[number + 1])
        for index = 0, self.handle:param_count(number) - 1 do
            self.handle:set_state(number, index, "momentum", dict.state[at].momentum)
            at = at + 1
        end
    end
end

-- ---- Schedules -----------------------------------------------------------------------------------------

optim.schedule = {}

local Schedule = {}
Schedule.__index = Schedule
Schedule.__name = "yoke.optim.schedule"

--- One step on: call it after optimizer:step().
function Schedule:step()
    self.steps = self.steps + 1
    self.optimizer:set_lr(self.lr_at(self.steps))
end

function Schedule:get_lr() return self.lr_at(self.steps) end

--- The learning rate goes from `start` to `stop` in `total_steps` equal steps, and stays there.
function optim.schedule.linear(optimizer, start, stop, total_steps)
    if math.type(total_steps) ~= "integer" or total_steps < 1 then
        core.raise("value", "schedule.linear", "total_steps is " .. tostring(total_steps) .. "; at least 1 is needed")
    end
    local function lr_at(step) return core.schedule_linear(start, stop, total_steps, step) end
    optimizer:set_lr(lr_at(0))
    return setmetatable({ optimizer = optimizer, steps = 0, lr_at = lr_at }, Schedule)
end

return optim
