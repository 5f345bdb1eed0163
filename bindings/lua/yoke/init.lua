--- Yoke for Lua 5.4. Indices and axes count from 0, as in C and Python; Lua's own lists (what tolist,
--- parameters and devices return) count from 1 as ever.
---
--- The functions of the C API come from yoke.core; what is thin sugar over them is plain Lua: yoke.nn,
--- yoke.optim, yoke.data.
local core = require "yoke.core"

local yoke = {}
local hidden = { tensor_methods = true, optimizer = true, grad_scaler = true, ema = true, schedules = true,
    read_idx = true, raise = true, get_rng_state = true, set_rng_state = true, clock = true,
    get_allow_tf32 = true, set_allow_tf32 = true, _select = true, _pause = true }
for name, value in pairs(core) do
    if not hidden[name] then yoke[name] = value end
end

-- The formatter may call anything of the module, so it comes in from here.
core.tensor_methods.__format = require("yoke.format").tensor

yoke.backends = require "yoke.backends"
yoke.data = require "yoke.data"
yoke.nn = require "yoke.nn"
yoke.optim = require "yoke.optim"
yoke.GradScaler = require "yoke.scaler"

local random = require "yoke.random"
yoke.get_rng_state, yoke.set_rng_state, yoke.Generator = random.get_rng_state, random.set_rng_state, random.Generator
yoke.Timer = require "yoke.timer"

local choice = require "yoke.select"
yoke.select, yoke.device, yoke.disabled = choice.select, choice.device, choice.disabled

return yoke
