--- yoke.optim.schedule: learning rates over time. Make one over an optimizer and call schedule:step() after each of its
--- steps; the rate of step 0 is in force at once. Formulas are PyTorch's.
local core = require "yoke.core"
local options = require "yoke.options"
local formulas = core.schedules

local schedule = {}

local function at_least(kind, name, value, least)
    if math.type(value) ~= "integer" or value < least then
        core.raise("value", "schedule." .. kind, name .. " is " .. tostring(value) .. "; an integer of at least " .. least
            .. " is needed")
    end
    return value
end

local function number(kind, name, value)
    if type(value) ~= "number" then
        core.raise("type", "schedule." .. kind, name .. " is " .. tostring(value) .. "; a number is needed")
    end
    return value
end

local Schedule = {}
Schedule.__index = Schedule
Schedule.__name = "yoke.optim.schedule"

local function apply(self)
    for i, base in ipairs(self.base_lrs) do self.optimizer:set_lr(self.lr_at(self.steps, base), i - 1) end
end

-- lr_at(step, base) gives the rate of a group whose rate was `base` at the beginning.
local function new(kind, optimizer, lr_at)
    if type(optimizer) ~= "table" or not optimizer.param_groups then
        core.raise("type", "schedule." .. kind, "argument 'optimizer' must be one of yoke.optim, not a " .. type(optimizer))
    end
    local self = setmetatable({ optimizer = optimizer, steps = 0, lr_at = lr_at, base_lrs = {} }, Schedule)
    for i in ipairs(optimizer.param_groups) do self.base_lrs[i] = optimizer:get_lr(i - 1) end
    apply(self)
    return self
end

--- One step on: call it after optimizer:step().
function Schedule:step()
    self.steps = self.steps + 1
    apply(self)
end

--- The rate of one group (counted from 0; the first if none is named).
function Schedule:get_lr(group) return self.optimizer:get_lr(group) end

--- The rates of all groups.
function Schedule:last_lr()
    local rates = {}
    for i in ipairs(self.base_lrs) do rates[i] = self.optimizer:get_lr(i - 1) end
    return rates
end

--- Where it is: for load_state_dict of a schedule that was made with the same arguments.
function Schedule:state_dict() return { steps = self.steps, base_lrs = table.move(self.base_lrs, 1, #self.base_lrs, 1, {}) } end

--- Goes on from where state_dict was taken; an error, and nothing changed, where it does not fit.
function Schedule:load_state_dict(dict)
    options.entries("load_state_dict", "dict", dict, { "steps", "base_lrs" })
    options.entries("load_state_dict", "base_lrs", dict.base_lrs, {})
    at_least("load_state_dict", "steps", dict.steps, 0)
    for _, rate in ipairs(dict.base_lrs) do number("load_state_dict", "base_lrs", rate) end
    if #dict.base_lrs ~= #self.base_lrs then
        core.raise("value", "load_state_dict", ("rates of %d groups for an optimizer with %d"):format(#dict.base_lrs,
            #self.base_lrs))
    end
    self.steps, self.base_lrs = dict.steps, table.move(dict.base_lrs, 1, #dict.base_lrs, 1, {})
    apply(self)
end

-- The arguments behind the required ones: a list of {name, default}.
local function read(kind, known, ...) return options.read("schedule." .. kind, known, ...) end

--- {factor = 1, total_steps = 0}: factor * base before total_steps, then base. Without arguments the rate never
--- changes.
function schedule.constant(optimizer, ...)
    local factor, total_steps = read("constant", { { "factor", 1 }, { "total_steps", 0 } }, ...)
    at_least("constant", "total_steps", total_steps, 0)
    return new("constant", optimizer, function(step, base) return formulas.constant(base, factor, total_steps, step) end)
end

--- The rate of all groups goes from `start` to `stop` in `total_steps` equal steps, and stays there.
function schedule.linear(optimizer, start, stop, total_steps)
    number("linear", "start", start)
    number("linear", "stop", stop)
    at_least("linear", "total_steps", total_steps, 1)
    return new("linear", optimizer, function(step) return formulas.linear(start, stop, total_steps, step) end)
end

--- {min_lr = 0, warmup_steps = 0}: up to each group's rate in warmup_steps, then half a cosine down to min_lr at
--- total_steps.
function schedule.cosine(optimizer, total_steps, ...)
    at_least("cosine", "total_steps", total_steps, 1)
    local least, warmup = read("cosine", { { "min_lr", 0 }, { "warmup_steps", 0 } }, ...)
    at_least("cosine", "warmup_steps", warmup, 0)
    return new("cosine", optimizer, function(step, base) return formulas.cosine(base, least, total_steps, warmup, step) end)
end

--- {gamma = 0.1}: the rate is multiplied by gamma after every step_size steps.
function schedule.step(optimizer, step_size, ...)
    at_least("step", "step_size", step_size, 1)
    local gamma = read("step", { { "gamma", 0.1 } }, ...)
    return new("step", optimizer, function(step, base) return formulas.step(base, step_size, gamma, step) end)
end

--- {pct_start = 0.3, div_factor = 25, final_div_factor = 1e4}: from max_lr / div_factor up to max_lr over pct_start of
--- the steps, then down to max_lr / div_factor / final_div_factor.
function schedule.one_cycle(optimizer, max_lr, total_steps, ...)
    number("one_cycle", "max_lr", max_lr)
    at_least("one_cycle", "total_steps", total_steps, 1)
    local share, div, last = read("one_cycle",
        { { "pct_start", 0.3 }, { "div_factor", 25 }, { "final_div_factor", 1e4 } }, ...)
    if share < 0 or share > 1 then
        core.raise("value", "schedule.one_cycle", "pct_start is " .. share .. "; it is a share, 0 to 1")
    end
    return new("one_cycle", optimizer,
        function(step) return formulas.one_cycle(max_lr, total_steps, share, div, last, step) end)
end

return schedule
