--- Yoke for Lua 5.4. Indices and axes count from 0, as in C and Python; Lua's own lists (from tolist, parameters and
--- devices) count from 1.
---
--- The functions of the C API come from yoke.core. Convenience on top of them is plain Lua: yoke.nn, yoke.optim,
--- yoke.data, which are read at their first use.
local core = require "yoke.core"

local yoke = {}
local hidden = { tensor_methods = true, shape_class = true, optimizer = true, grad_scaler = true, ema = true, schedules = true,
    read_idx = true, raise = true, meant = true, nearest = true, other_name = true, foreign_name = true, named_op = true, get_rng_state = true, set_rng_state = true, new_stream = true, stream_place = true, set_stream = true, clock = true,
    get_allow_tf32 = true, state = true, state_list = true, state_dict = true, _save = true, _load = true,
    _load_info = true, _check_schedule = true, _checkpoint_manager = true, _misfits = true, _copy_into = true,
    _comm_init = true, _comm_init_devices = true, _comm_group = true, _comm_finalize = true, _comm_coalesce = true, _comm_env = true, _comm_note_raised = true, _comm_hang = true, _comm_tell_lines = true, _run = true,
    _program = true, _reducer = true, _record_function = true, _detect_anomaly = true, _refuse_device = true, _sampler = true,
    set_allow_tf32 = true, cudnn_set = true, cudnn_get = true, cudnn_version = true, cudnn_why_unavailable = true, _select = true, _pause = true }
for name, value in pairs(core) do
    if not hidden[name] then yoke[name] = value end
end

require "yoke.habits"
for name, value in pairs(require "yoke.types") do yoke[name] = value end

-- The formatter may call any function of the module, so the module sets it here.
core.tensor_methods.__format = require("yoke.format").tensor

yoke.backends = require "yoke.backends"
yoke.inference_mode = yoke.no_grad
for name, value in pairs(require "yoke.precision") do yoke[name] = value end

local random = require "yoke.random"
yoke.get_rng_state, yoke.set_rng_state, yoke.Generator = random.get_rng_state, random.set_rng_state, random.Generator
yoke.Timer = require "yoke.timer"
yoke.checkpoint_sequential = require "yoke.checkpoint"

local state = require "yoke.state"
for name, value in pairs(state) do yoke[name] = value end

local choice = require "yoke.select"
yoke.select, yoke.device, yoke.disabled = choice.select, choice.device, choice.disabled

-- Modules read at their first use: a script that only looks for devices does not load layers.
return require "yoke.missing".module("yoke", yoke, { data = "yoke.data", nn = "yoke.nn", optim = "yoke.optim", GradScaler = "yoke.scaler",
    CheckpointManager = "yoke.manager", comm = "yoke.comm", DistributedDataParallel = "yoke.parallel",
    spawn = "yoke.spawn", amp = "yoke.amp", cuda = "yoke.cuda", utils = "yoke.utils", autograd = "yoke.autograd" })
