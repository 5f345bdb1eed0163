--- yoke.GradScaler: loss scaling for float16, by the rules of PyTorch's GradScaler.
---
---     scaler:scale(loss):backward()
---     scaler:step(optimizer)  -- skipped where a gradient is infinite or NaN
---     scaler:update()         -- smaller then; larger after growth_interval good iterations
---
--- To clip, call scaler:unscale_(optimizer) before. To gather gradients over n batches, divide each loss by n, and call
--- step and update after the last alone.
local core = require "yoke.core"
local options = require "yoke.options"
local tree = require "yoke.tree"

local GradScaler = {}
GradScaler.__index = GradScaler
GradScaler.__name = "yoke.GradScaler"

local defaults = { init_scale = 65536, growth_factor = 2, backoff_factor = 0.5, growth_interval = 2000, enabled = true }

local function new(given)
    core._refuse_device("GradScaler", given)
    given = options.named("GradScaler", given, defaults)
    local enabled = given.enabled
    local handle = core.grad_scaler {
        scale = given.init_scale, growth_factor = given.growth_factor, backoff_factor = given.backoff_factor,
        growth_interval = given.growth_interval, enabled = enabled,
    }
    return setmetatable({ handle = handle, enabled = enabled }, GradScaler)
end

--- Returns the outputs times the scale: a tensor, or lists of tensors, nested as given.
function GradScaler:scale(outputs)
    if not self.enabled then return outputs end
    if type(outputs) ~= "table" then return self.handle:scale(outputs) end
    local scaled = {}
    for i, each in ipairs(outputs) do scaled[i] = self:scale(each) end
    return scaled
end

local function handle_of(optimizer, call)
    if type(optimizer) ~= "table" or not optimizer.handle then
        core.raise("type", call, ("argument 'optimizer' is %s; it takes an optimizer of yoke.optim"):format(options.shown(optimizer)))
    end
    return optimizer.handle
end

--- Divides the optimizer's gradients by the scale now, for clipping; at most once an iteration.
function GradScaler:unscale_(optimizer) self.handle:unscale(handle_of(optimizer, "unscale_")) end

--- Unscales, if the gradients are not yet unscaled, and steps unless a gradient is not finite. After an out-of-memory
--- error the step may be repeated; for other gradients call update() first.
function GradScaler:step(optimizer) self.handle:step(handle_of(optimizer, "step")) end

--- Ends an iteration after the steps of all its optimizers; new_scale (a number or tensor) overrides the rule.
function GradScaler:update(...)
    local new_scale = options.read("update", { { "new_scale", options.none } }, ...)
    if type(new_scale) == "number" then new_scale = core.tensor(new_scale + 0.0, { device = "cpu" }) end
    self.handle:update(new_scale)
end

--- The scale now, 1 if disabled. It waits for the device.
function GradScaler:get_scale() return self.enabled and self.handle:get_state().scale or 1.0 end

function GradScaler:is_enabled() return self.enabled end

for _, name in ipairs { "growth_factor", "backoff_factor", "growth_interval" } do
    GradScaler["get_" .. name] = function(self) return self.handle:get_state()[name] end
    GradScaler["set_" .. name] = function(self, value)
        local rule = self.handle:get_state()
        rule[name] = value
        self.handle:set_rule(rule.growth_factor, rule.backoff_factor, rule.growth_interval)
    end
end

--- Returns the state for load_state_dict, after update(); an empty table if disabled.
function GradScaler:state_dict() return tree.value(self.handle:state()) end

--- Continues from state_dict's result, with a new iteration; does nothing if disabled. Raises if the state does not
--- fit.
function GradScaler:load_state_dict(dict)
    if self.enabled then self.handle:load_state(tree.of(dict, "load_state_dict", "dict")) end
end

function GradScaler:close() self.handle:close() end
GradScaler.__close = GradScaler.close
options.check_self(GradScaler, "scaler")

return new
