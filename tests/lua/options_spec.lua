-- Keyword arguments stand in one trailing table, wherever an argument has a default.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local optim, nn = yoke.optim, yoke.nn

local function sgd() return optim.SGD({ yoke.tensor({ 1. }, { requires_grad = true }) }, { lr = 1 }) end

-- The rate of a schedule after some steps.
local function rate_after(steps, make)
    local optimizer <close> = sgd()
    local schedule = make(optim.schedule, optimizer)
    for _ = 1, steps do schedule:step() end
    return schedule:get_lr()
end

describe("trailing options", function()
    it("are read by schedules", function()
        assert.equal(0.25, rate_after(2, function(s, o) return s.step(o, 2, { gamma = 0.25 }) end))
        assert.equal(0.25, rate_after(2, function(s, o) return s.step(o, 2, 0.25) end))
        assert.equal(0.5, rate_after(0, function(s, o) return s.constant(o, { factor = 0.5, total_steps = 3 }) end))
        assert.equal(0.5, rate_after(0, function(s, o) return s.constant(o, 0.5, { total_steps = 3 }) end))
        assert.equal(0.5, rate_after(9, function(s, o) return s.cosine(o, 4, { min_lr = 0.5 }) end))
        assert.equal(0.125, rate_after(0, function(s, o) return s.one_cycle(o, 1, 10, { div_factor = 8 }) end))
    end)

    it("are read by nn.init", function()
        local x = nn.init.uniform_(yoke.zeros { 64 }, { a = 2, b = 3 })
        assert.is_true(yoke.amin(x):item() >= 2 and yoke.amax(x):item() <= 3)
        assert.is_true(yoke.amin(nn.init.uniform_(yoke.zeros { 4 }, 2, { b = 3 })):item() >= 2)
        local mean = nn.init.normal_(yoke.zeros { 4 }, { mean = 100, std = 0 })
        assert.same({ 100, 100, 100, 100 }, mean:tolist())
        assert.is_true(yoke.amax(nn.init.trunc_normal_(yoke.zeros { 64 }, { a = -0.5, b = 0.5 })):item() <= 0.5)
        for _, name in ipairs { "xavier_uniform_", "xavier_normal_", "orthogonal_" } do
            assert.equal(0, yoke.sum(yoke.abs(nn.init[name](yoke.ones { 3, 3 }, { gain = 0 }))):item())
        end
        assert.equal(1.0, nn.init.calculate_gain("leaky_relu", { param = 1 }))
        fails("value", { "kaiming_normal_", "'fan'", "mode" }, nn.init.kaiming_normal_, yoke.ones { 2, 2 }, { fan = 1 })
    end)

    it("are read by averages, clipping, generators and scalers", function()
        local x = yoke.tensor({ 3., 4. }, { requires_grad = true })
        local ema <close> = optim.EMA({ x }, { decay = 0.5 })
        assert.equal(0.5, ema.decay)
        x.grad = yoke.tensor { 3., 4. }
        assert.equal(7.0, yoke.clip_grad_norm_({ x }, 100, { norm_type = 1 }):item())
        assert.equal(7.0, yoke.clip_grad_norm_({ x }, 100, 1):item())
        assert.equal(5.0, yoke.clip_grad_norm_({ x }, 100, {}):item())
        fails("value", { "clip_grad_norm_", "'p'", "norm_type" }, yoke.clip_grad_norm_, { x }, 1.0, { p = 1 })
        fails("type", "norm_type", yoke.clip_grad_norm_, { x }, 1.0, { norm_type = "one" })
        x.grad = nil
        local function draw(generator) return generator:use(function() return yoke.rand { 3 }:tolist() end) end
        assert.same(draw(yoke.Generator(nil, 3)), draw(yoke.Generator { seed = 3 }))
        assert.same(draw(yoke.Generator("cpu", 3)), draw(yoke.Generator("cpu", { seed = 3 })))
        local scaler = yoke.GradScaler()
        scaler:scale(yoke.ones {})
        scaler:update { new_scale = 2.0 }
        assert.equal(2.0, scaler:get_scale())
        scaler:close()
    end)

    it("are read by layers", function()
        assert.equal(0.1, nn.Dropout({ p = 0.1 }).p)
        assert.equal(0.1, nn.Dropout(0.1).p)
        assert.equal("Softmax(axis=0)", tostring(nn.Softmax { axis = 0 }))
        assert.same({ { 0.5 }, { 0.5 } }, nn.Softmax({ axis = 0 })(yoke.ones { 2, 1 }):tolist())
        assert.equal("LogSoftmax(axis=-1)", tostring(nn.LogSoftmax(nil)))
        assert.equal("ReLU()", tostring(nn.ReLU(nil)))
    end)

    it("of a wrong name or type are error objects", function()
        for _, case in ipairs {
            { "value", { "'start'", "none" }, nn.ReLU, { start = 1 } },
            { "type", { "ReLU", "1 argument was given (the last is 1); it must have no arguments" }, nn.ReLU, 1 },
            { "value", { "ReLU", "'inplace'" }, nn.ReLU, { inplace = true } },
            { "type", { "LogSoftmax", "'axis'", "'x'", "a number" }, nn.LogSoftmax, "x" },
            { "type", { "Softmax", "0.5", "an integer" }, nn.Softmax, { axis = 0.5 } },
            { "type", { "Dropout", "'p'", "a boolean" }, nn.Dropout, { p = true } },
            { "value", { "Dropout", "argument 'p' is 2; it must be a probability between 0 and 1" }, nn.Dropout, { p = 2 } },
            { "type", { "LayerNorm", "'eps'" }, nn.LayerNorm, 3, { eps = "small" } },
            { "value", { "LayerNorm", "'normalized_shape' is 0" }, nn.LayerNorm, 0 },
            { "value", { "Linear: argument 'out_features' is 'a'; it must be a whole number" }, nn.Linear, 3, "a" },
            { "type", { "2 arguments were given (the last is 3)", "at most 1: axis" }, nn.LogSoftmax, 1, 3 },
            { "value", { "RMSNorm", "'normalized_shape' is empty" }, nn.RMSNorm, {} },
            { "type", { "normal_", "'std'", "given twice" }, nn.init.normal_, yoke.ones { 1 }, 0, 1, { std = 2 } },
            { "type", { "EMA", "'decay'", "'x'" }, optim.EMA, {}, "x" },
            { "type", { "schedule.step", "optimizer" }, optim.schedule.step, 3, 3 },
            { "type", { "schedule.linear", "argument 'start' is nil" }, optim.schedule.linear, {} },
            { "type", { "Generator", "'seed'" }, yoke.Generator, { seed = "x" } },
        } do
            fails(table.unpack(case))
        end
    end)

    it("cannot hide a batch that has no axis of its own", function()
        for _, kind in ipairs { "MultiheadAttention", "TransformerBlock" } do
            local net = nn[kind](8, 2)
            fails("value", { kind, "[3, 8]", "[N, length, " }, net, yoke.ones { 3, 8 })
            net:close()
        end
    end)
end)
