-- Wrong arguments of what trains: an error of Yoke's names call and argument.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn, optim = yoke.nn, yoke.optim

local function parameter() return yoke.tensor({ 1., 2. }, { requires_grad = true }) end

describe("wrong arguments", function()
    it("of scalers, modules and schedules are told by name", function()
        local scaler <close> = yoke.GradScaler()
        fails("type", { "load_state_dict", "'state_dict' is none" }, scaler.load_state_dict, scaler, nil)
        local state = scaler:state_dict()
        state.scale = "x"
        fails("type", { "load_state_dict", "'scale'" }, scaler.load_state_dict, scaler, state)
        fails("type", { "GradScaler", "'init_scale' is 'x'" }, yoke.GradScaler, { init_scale = "x" })
        fails("type", "GradScaler", yoke.GradScaler, 3)
        local net = nn.Linear(2, 2)
        fails("type", { "load_state_dict", "'dict' is nil" }, net.load_state_dict, net, nil)
        fails("type", { "register_parameter", "'tensor' is 3" }, net.register_parameter, net, "w", 3)
        fails("type", { "register_parameter", "'name' is nil" }, net.register_parameter, net, nil, yoke.ones { 1 })
        fails("type", { "register_buffer", "'name' is 3" }, net.register_buffer, net, 3)
        fails("type", { "Parameter", "'tensor' is 3" }, nn.Parameter, 3)
        fails("type", { "ModuleList", "'modules' is 3" }, nn.ModuleList, 3)
        fails("type", { "constant_", "'tensor' is 3" }, nn.init.zeros_, 3)
        fails("type", { "xavier_normal_", "'tensor' is 3" }, nn.init.xavier_normal_, 3)
        fails("type", { "trunc_normal_", "'tensor' is 3" }, nn.init.trunc_normal_, 3)
        local optimizer <close> = optim.SGD({ parameter() }, { lr = 1 })
        local schedule = optim.schedule.step(optimizer, 2)
        fails("type", "'state_dict' is none", schedule.load_state_dict, schedule, nil)
        fails("value", "'kind' is missing", schedule.load_state_dict, schedule, {})
        local good = schedule:state_dict()
        for name, value in pairs { last_step = "x", base_lrs = { "x" }, kind = 3 } do
            local wrong = schedule:state_dict()
            wrong[name] = value
            fails("type", "'" .. name .. "'", schedule.load_state_dict, schedule, wrong)
        end
        good.kind = "linaer"
        fails("value", "did you mean 'linear'", schedule.load_state_dict, schedule, good)
        assert.same({ kind = "step", step_size = 2, gamma = 0.1, last_step = 0, base_lrs = { 1.0 } }, schedule:state_dict())
    end)

    it("of optimizers and timers are told by name", function()
        local x = parameter()
        fails("type", { "SGD", "'options' is 3" }, optim.SGD, { x }, 3)
        local optimizer <close> = optim.SGD({ x }, { lr = 1 })
        fails("type", { "SGD", "'group' is nil" }, optimizer.add_param_group, optimizer, nil)
        fails("type", { "Timer", "'seconds' is 'x'" }, yoke.Timer, print, { seconds = "x" })
        fails("value", { "Timer", "are 0.5 and -1" }, yoke.Timer, print, { warmup = -1 })
        fails("value", { "Timer", "'seconds' and 'warmup' are false" }, yoke.Timer, print, { seconds = false })
        fails("value", { "Timer", "'hurry'" }, yoke.Timer, print, { hurry = 1 })
        fails("type", "Timer", yoke.Timer, print, 3)
    end)

    it("of randint name bounds and dtype where a float does not hold what lies between", function()
        assert.equal(2048.0, yoke.randint(2048, 2049, { 3 }, { dtype = "float16" }):amax():item())
        for dtype, high in pairs { float16 = 2050, bfloat16 = 258, float32 = (1 << 24) + 2 } do
            local words = { ("[0, %d) does not fit into %s"):format(high, dtype) }
            fails("value", words, yoke.randint, 0, high, { 3 }, { dtype = dtype })
            fails("value", words, yoke.randint_like, yoke.zeros({ 3 }, dtype), 0, high)
        end
    end)

    it("of a list of numbers are told by their place", function()
        local x = yoke.tensor { { { { 1., 3. } } } }
        local wide = { { { { 1, 1, 1, 3, 3 } } } }
        assert.same(wide, x:interpolate({ scale_factor = { 1, 2.5 } }):tolist())
        assert.same(wide, yoke.interpolate(x, nil, { 1, 2.5 }):tolist())
        assert.same(wide, yoke.interpolate(x, { 1, 5 }):tolist())
        assert.same({ 1, 1, 2, 4 }, x:interpolate({ scale_factor = 2 }).shape)
        fails("type", { "interpolate", "item 2 of argument 'scale_factor'", "it takes numbers" }, yoke.interpolate, x, nil, { 1, "2" })
        fails("type", { "interpolate", "'scale_factor' is a string", "a number, a list of numbers or nil" }, yoke.interpolate, x, nil, "2")
        fails("value", { "interpolate", "'scale_factor' has 3 numbers" }, yoke.interpolate, x, nil, { 1, 2, 3 })
        fails("value", { "interpolate", "'scale_factor' is a list of 17 numbers" }, yoke.interpolate, x, nil, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 })
    end)
end)
