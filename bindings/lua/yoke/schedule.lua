--- yoke.optim.schedule: learning rates over time. Make one over an optimizer and call schedule:step() after each of its
--- steps; the rate of step 0 is in force at once. Formulas are PyTorch's.
local core = require "yoke.core"
local options = require "yoke.options"
local tree = require "yoke.tree"
local formulas = core.schedules

local schedule = {}

local function at_least(kind, name, value, least)
    if math.type(value) ~= "integer" or value < least then
        core.raise("value", "schedule." .. kind, ("argument '%s' is %s; it must be a whole number of %d or more"):format(name, tostring(value), least))
    end
    return value
end

local function number(kind, name, value)
    if type(value) ~= "number" then
        core.raise("type", "schedule." .. kind, ("argument '%s' is %s; it takes a number"):format(name, tostring(value)))
    end
    return value
end

local Schedule = {}
Schedule.__index = Schedule
Schedule.__name = "yoke.optim.schedule"

local function apply(self)
    for i, base in ipairs(self.base_lrs) do self.optimizer:set_lr(self.lr_at(self, self.last_step, base), i - 1) end
end

-- lr_at(given, step, base) returns the rate of a group with the initial rate `base`; `given` are the options of the
-- kind, which the schedule keeps under their names.
local function new(kind, optimizer, given, lr_at)
    if type(optimizer) ~= "table" or not optimizer.param_groups then
        core.raise("type", "schedule." .. kind, ("argument 'optimizer' is %s; it takes an optimizer of yoke.optim"):format(options.shown(optimizer)))
    end
    local self = setmetatable({ kind = kind, optimizer = optimizer, last_step = 0, lr_at = lr_at, base_lrs = {} }, Schedule)
    self.names = {}
    for name, value in pairs(given) do self[name], self.names[#self.names + 1] = value, name end
    for i in ipairs(optimizer.param_groups) do self.base_lrs[i] = optimizer:get_lr(i - 1) end
    apply(self)
    return self
end

--- Advances a step: call it after optimizer:step(). Before the first optimizer step it warns.
function Schedule:step()
    self.optimizer.handle:note_schedule()
    self.last_step = self.last_step + 1
    apply(self)
end

--- Returns the rate of a group (counted from 0; the first by default).
function Schedule:get_lr(group) return self.optimizer:get_lr(group) end

--- The rates of all groups.
function Schedule:last_lr()
    local rates = {}
    for i in ipairs(self.base_lrs) do rates[i] = self.optimizer:get_lr(i - 1) end
    return rates
end

local function copy(list) return table.move(list, 1, #list, 1, {}) end

--- {kind = "cosine", its options, base_lrs = {...}, last_step =}: input of load_state_dict.
function Schedule:state_dict()
    local dict = { kind = self.kind, base_lrs = copy(self.base_lrs), last_step = self.last_step }
    for _, name in ipairs(self.names) do dict[name] = self[name] end
    return dict
end

--- Continues from the place of state_dict. If the state does not fit, raises an error and changes nothing.
function Schedule:load_state_dict(dict)
    core._check_schedule(tree.of(dict, "load_state_dict", "dict"), #self.base_lrs)
    if dict.kind ~= self.kind then
        core.raise("value", "load_state_dict", ("the state belongs to the schedule %s, but this schedule is %s; load the state into a schedule of its kind")
            :format(dict.kind, self.kind))
    end
    for _, name in ipairs(self.names) do self[name] = dict[name] end
    self.last_step, self.base_lrs = dict.last_step, copy(dict.base_lrs)
    apply(self)
end

options.check_self(Schedule, "schedule")

-- The arguments behind the required ones: a list of {name, default}.
local function read(kind, known, ...) return options.read("schedule." .. kind, known, ...) end

--- {factor = 1, total_steps = 0}: factor * base before total_steps, then base. Without arguments the rate never
--- changes.
function schedule.constant(optimizer, ...)
    local factor, total_steps = read("constant", { { "factor", 1 }, { "total_steps", 0 } }, ...)
    at_least("constant", "total_steps", total_steps, 0)
    return new("constant", optimizer, { factor = factor, total_steps = total_steps },
        function(given, step, base) return formulas.constant(base, given.factor, given.total_steps, step) end)
end

--- The rate of all groups goes from `start` to `stop` in `total_steps` equal steps, and stays there.
function schedule.linear(optimizer, start, stop, total_steps)
    number("linear", "start", start)
    number("linear", "stop", stop)
    at_least("linear", "total_steps", total_steps, 1)
    return new("linear", optimizer, { start = start, ["end"] = stop, total_steps = total_steps },
        function(given, step) return formulas.linear(given.start, given["end"], given.total_steps, step) end)
end

--- {min_lr = 0, warmup_steps = 0}: up to each group's rate in warmup_steps, then half a cosine down to min_lr at
--- total_steps.
function schedule.cosine(optimizer, total_steps, ...)
    at_least("cosine", "total_steps", total_steps, 1)
    local least, warmup = read("cosine", { { "min_lr", 0 }, { "warmup_steps", 0 } }, ...)
    at_least("cosine", "warmup_steps", warmup, 0)
    return new("cosine", optimizer, { total_steps = total_steps, min_lr = least, warmup_steps = warmup },
        function(given, step, base) return formulas.cosine(base, given.min_lr, given.total_steps, given.warmup_steps, step) end)
end

--- {gamma = 0.1}: the rate is multiplied by gamma after every step_size steps.
function schedule.step(optimizer, step_size, ...)
    at_least("step", "step_size", step_size, 1)
    local gamma = read("step", { { "gamma", 0.1 } }, ...)
    return new("step", optimizer, { step_size = step_size, gamma = gamma },
        function(given, step, base) return formulas.step(base, given.step_size, given.gamma, step) end)
end

--- {pct_start = 0.3, div_factor = 25, final_div_factor = 1e4}: from max_lr / div_factor up to max_lr over pct_start of
--- the steps, then down to max_lr / div_factor / final_div_factor.
function schedule.one_cycle(optimizer, max_lr, total_steps, ...)
    number("one_cycle", "max_lr", max_lr)
    at_least("one_cycle", "total_steps", total_steps, 1)
    local share, div, last = read("one_cycle",
        { { "pct_start", 0.3 }, { "div_factor", 25 }, { "final_div_factor", 1e4 } }, ...)
    if share < 0 or share > 1 then
        core.raise("value", "schedule.one_cycle", ("option 'pct_start' is %s; it must be a share, from 0 to 1"):format(share))
    end
    local given = { max_lr = max_lr, total_steps = total_steps, pct_start = share, div_factor = div, final_div_factor = last }
    return new("one_cycle", optimizer, given, function(it, step)
        return formulas.one_cycle(it.max_lr, it.total_steps, it.pct_start, it.div_factor, it.final_div_factor, step)
    end)
end

return schedule
