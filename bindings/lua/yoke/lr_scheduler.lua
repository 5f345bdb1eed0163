--- PyTorch's schedules of the learning rate, with its names and arguments, over those of yoke.optim.schedule.
local core = require "yoke.core"
local missing = require "yoke.missing"
local options = require "yoke.options"
local schedule = require "yoke.schedule"

local schedulers = {}

local read = options.read

--- {gamma = 0.1}: the rate is multiplied by gamma after every step_size steps.
function schedulers.StepLR(optimizer, step_size, ...)
    return schedule.step(optimizer, step_size, (read("StepLR", { { "gamma", 0.1 } }, ...)))
end

--- {factor = 1 / 3, total_iters = 5}: factor times the rate before total_iters, then the rate.
function schedulers.ConstantLR(optimizer, ...)
    return schedule.constant(optimizer, read("ConstantLR", { { "factor", 1 / 3 }, { "total_iters", 5 } }, ...))
end

--- {start_factor = 1 / 3, end_factor = 1, total_iters = 5}: the rate goes in equal parts from one factor to the other.
--- All groups must have the same rate.
function schedulers.LinearLR(optimizer, ...)
    local first, last, count = read("LinearLR", { { "start_factor", 1 / 3 }, { "end_factor", 1. }, { "total_iters", 5 } }, ...)
    if type(optimizer) ~= "table" or not optimizer.param_groups then return schedule.linear(optimizer, first, last, count) end
    local rate = optimizer:get_lr(0)
    for i = 2, #optimizer.param_groups do
        if optimizer:get_lr(i - 1) ~= rate then
            core.raise("value", "LinearLR", ("the groups of argument 'optimizer' have the rates %g and %g; they must have the same rate"):format(
                rate, optimizer:get_lr(i - 1)))
        end
    end
    return schedule.linear(optimizer, rate * first, rate * last, count)
end

--- {eta_min = 0}: half a cosine from the rate down to eta_min in T_max steps.
function schedulers.CosineAnnealingLR(optimizer, T_max, ...)
    return schedule.cosine(optimizer, T_max, (read("CosineAnnealingLR", { { "eta_min", 0. } }, ...)))
end

--- {pct_start = 0.3, div_factor = 25, final_div_factor = 1e4}: rises to max_lr, then falls; the momentum stays.
function schedulers.OneCycleLR(optimizer, max_lr, total_steps, ...)
    return schedule.one_cycle(optimizer, max_lr, total_steps,
        read("OneCycleLR", { { "pct_start", 0.3 }, { "div_factor", 25. }, { "final_div_factor", 1e4 } }, ...))
end

return missing.module("optim.lr_scheduler", schedulers)
