-- Adam, loss scaling, clipping, averages and schedules: what training with mixed precision is made of.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local optim = yoke.optim

local function parameter(...) return yoke.tensor({ ... }, { requires_grad = true }) end

local function near(want, got)
    assert(math.abs(want - got) <= 1e-5 * math.max(1, math.abs(want)), want .. " and not " .. got)
end

describe("optim.Adam and optim.AdamW", function()
    it("follow their definition", function()
        for _, kind in ipairs { "Adam", "AdamW" } do
            local decay = 0.5
            local x = parameter(2.)
            local optimizer = optim[kind]({ x }, { lr = 0.1, betas = { 0.5, 0.75 }, eps = 1e-3, weight_decay = decay })
            local p, m, v = 2., 0., 0.
            for t, g in ipairs { 1., -3., 0.5 } do
                x.grad = yoke.tensor { g }
                optimizer:step()
                if kind == "AdamW" then p = p * (1 - 0.1 * decay) else g = g + decay * p end
                m, v = m + 0.5 * (g - m), 0.75 * v + 0.25 * g * g
                p = p - 0.1 / (1 - 0.5 ^ t) * m / (math.sqrt(v / (1 - 0.75 ^ t)) + 1e-3)
                near(p, x:item())
            end
        end
    end)

    it("have defaults, groups and options that can be changed", function()
        local a, b = parameter(1.), parameter(1.)
        local optimizer = optim.AdamW { { params = { a }, betas = { 0.5, 0.5 } }, { params = { b }, lr = 1 } }
        local first = optimizer.param_groups[1]
        assert.same({ 0.5, 0.5 }, first.betas)
        assert.same({ 1e-3, 1e-8, 1e-2, false }, { first.lr, first.eps, first.weight_decay, first.master_weights })
        assert.equal(0.0, optim.Adam({ parameter(1.) }).param_groups[1].weight_decay)
        first.betas = { 0.25, 0.75 }
        assert.same({ 0.25, 0.75 }, first.betas)
        fails("value", "'betas'", function() first.betas = { 1, 2 } end)
        fails("value", "master_weights", function() first.master_weights = true end)
        fails("value", "momentum", function() first.momentum = 1 end)
        fails("value", "it takes betas, eps, lr", optim.Adam, { a }, { momentum = 1 })
        fails("type", "betas", optim.Adam, { a }, { betas = 1 })
        fails("type", "int64", optim.Adam, { yoke.arange(2) })
    end)

    it("keep float32 masters of halves", function()
        local x = yoke.tensor({ 1., 2. }, { dtype = "float16", requires_grad = true })
        local optimizer = optim.SGD({ x }, { lr = 1e-4, master_weights = true })
        for _ = 1, 100 do
            x.grad = yoke.ones({ 2 }, { dtype = "float16" })
            optimizer:step()
        end
        near(1.99, optimizer:state_dict().state[0].master:tolist()[2])
        assert.near(0.99, x:tolist()[1], 1e-3)
    end)

    it("go on where their state was, and change nothing where it does not fit", function()
        local function run(x, optimizer, steps)
            for _ = 1, steps do
                x.grad = x:detach():clone()
                optimizer:step()
            end
        end
        local x, y = parameter(1., 2.), parameter(1., 2.)
        local whole, first = optim.Adam({ x }, { lr = 0.1 }), optim.Adam({ y }, { lr = 0.1 })
        run(x, whole, 6)
        run(y, first, 3)
        local second = optim.Adam({ y }, { lr = 9 })
        second:load_state_dict(first:state_dict())
        run(y, second, 3)
        assert.same(x:tolist(), y:tolist())
        local wrong = second:state_dict()
        wrong.param_groups[1].lr, wrong.state[0].exp_avg_sq = 5, yoke.ones { 7 }
        fails("value", "exp_avg_sq", second.load_state_dict, second, wrong)
        assert.equal(0.1, second:get_lr())
        run(x, whole, 1)
        run(y, second, 1)
        assert.same(x:tolist(), y:tolist())
    end)
end)

describe("GradScaler", function()
    local function one(options)
        local x = parameter(1., 2.)
        return x, optim.SGD({ x }, { lr = 1 }), yoke.GradScaler(options)
    end

    it("scales losses, unscales gradients, skips steps and follows the rule", function()
        local x, optimizer, scaler = one { init_scale = 1024, growth_interval = 2 }
        for _, case in ipairs { { 1., 1024. }, { math.huge, 512. }, { 1., 512. }, { 1., 1024. } } do
            local before = x:tolist()
            optimizer:zero_grad()
            local scale = scaler:get_scale()
            scaler:scale((x * case[1]):sum()):backward()
            assert.equal(case[1] * scale, x.grad:tolist()[1])
            scaler:step(optimizer)
            local moved = case[1] < math.huge and 1 or 0
            assert.same({ before[1] - moved, before[2] - moved }, x:tolist())
            scaler:update()
            assert.equal(case[2], scaler:get_scale())
        end
    end)

    it("takes lists, clipping and a scale by hand", function()
        local x, optimizer, scaler = one { init_scale = 4 }
        local scaled = scaler:scale { x:sum(), { x[1] } }
        assert.same({ 12.0, 8.0 }, { scaled[1]:item(), scaled[2][1]:item() })
        scaled[1]:backward()
        scaler:unscale_(optimizer)
        near(math.sqrt(2), yoke.clip_grad_norm_({ x }, 0.5):item())
        near(0.5 / math.sqrt(2), x.grad:tolist()[1])
        assert.equal(x.grad:tolist()[1], yoke.clip_grad_norm_({ parameter(1.), x }, 9, math.huge):item())
        scaler:step(optimizer)
        scaler:update(16)
        assert.equal(16.0, scaler:get_scale())
        scaler:update(yoke.tensor { 8. })
        assert.equal(8.0, scaler:get_scale())
    end)

    it("goes on from a saved state, and lets all pass when disabled", function()
        local x, optimizer, scaler = one { init_scale = 4, growth_interval = 2 }
        scaler:scale(x:sum()):backward()
        scaler:step(optimizer)
        scaler:update()
        local state = scaler:state_dict()
        assert.same({ scale = 4.0, growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 2, _growth_tracker = 1 }, state)
        local other = yoke.GradScaler()
        other:load_state_dict(state)
        assert.same(state, other:state_dict())
        scaler:scale(x:sum()):backward()
        scaler:unscale_(optimizer)
        scaler:load_state_dict(state)
        scaler:unscale_(optimizer)  -- a second iteration
        other:set_growth_interval(7)
        assert.equal(7, other:get_growth_interval())
        fails("value", "is missing", other.load_state_dict, other, {})
        local y, second, off = one { enabled = false }
        local loss = y:sum()
        assert.equal(loss, off:scale(loss))
        loss:backward()
        off:unscale_(second)
        off:step(second)
        off:update()
        assert.same({ 0.0, 1.0 }, y:tolist())
        assert.same({ 1.0, {} }, { off:get_scale(), off:state_dict() })
    end)

    it("refuses calls out of order and what it cannot use", function()
        local x, optimizer, scaler = one()
        fails("state", "no loss was scaled", scaler.step, scaler, optimizer)
        fails("state", "no loss was scaled", scaler.update, scaler)
        local loss = scaler:scale(x:sum())
        fails("state", "no parameter of this SGD has a gradient", scaler.step, scaler, optimizer)
        loss:backward()
        scaler:unscale_(optimizer)
        fails("state", "a second call", scaler.unscale_, scaler, optimizer)
        scaler:step(optimizer)
        fails("state", "after step()", scaler.unscale_, scaler, optimizer)
        fails("state", "a second call", scaler.step, scaler, optimizer)
        fails("type", "optimizer", scaler.step, scaler, x)
        fails("value", "speed", yoke.GradScaler, { speed = 1 })
        fails("value", "growth_factor", yoke.GradScaler, { growth_factor = 1 })
        scaler:close()
        fails("closed", "update", scaler.update, scaler)
    end)
end)

describe("param_groups", function()
    it("tells what would never reach the optimizer", function()
        local x, y = parameter(1.), parameter(2.)
        local optimizer <close> = optim.SGD({ x }, { lr = 0.1 })
        local group = optimizer.param_groups[1]
        fails("state", "add_param_group", table.insert, group.params, y)
        fails("state", "add_param_group", table.insert, optimizer.param_groups, { params = { y } })
        fails("state", "add_param_group", function() group.params = { y } end)
        fails("value", "'lr' cannot be removed", function() group.lr = nil end)
        optimizer:add_param_group { params = { y } }
        assert.equal(2, #optimizer.param_groups)
        table.remove(optimizer.param_groups)
        for _, call in ipairs { "step", "zero_grad", "state_dict" } do
            fails("state", "removed from param_groups", optimizer[call], optimizer)
        end
    end)
end)

describe("GradScaler", function()
    it("refuses a scale that no scaler comes to, and unscaling without gradients", function()
        local x = parameter(1.)
        local optimizer <close> = optim.SGD({ x }, { lr = 0.1 })
        local scaler <close> = yoke.GradScaler { init_scale = 4 }
        scaler:scale(x)
        fails("state", { "unscale_", "has a gradient" }, scaler.unscale_, scaler, optimizer)
        for _, scale in ipairs { -5, 1 / 0, 0 / 0 } do
            fails("value", "'new_scale'", scaler.update, scaler, scale)
            local state = scaler:state_dict()
            state.scale = scale
            fails("value", "the scale is", scaler.load_state_dict, scaler, state)
        end
        assert.equal(4.0, scaler:get_scale())
    end)

    it("stops at a smallest scale, tells it once, and unscales rightly from there", function()
        local x = parameter(0., 0.)
        local optimizer <close> = optim.SGD({ x }, { lr = 0.5 })
        local scaler <close> = yoke.GradScaler()
        local said = {}
        yoke.set_log_callback(function(_, message) said[#said + 1] = message end)
        for step = 1, 171 do
            optimizer:zero_grad()
            scaler:scale((x * (step < 171 and math.huge or 1)):sum()):backward()
            scaler:step(optimizer)
            scaler:update()
        end
        yoke.poll()
        yoke.set_log_callback(nil)
        assert.equal(2.0 ^ -126, scaler:get_scale())
        assert.same({ -0.5, -0.5 }, x:tolist())
        assert.equal(1, #said)
        assert.truthy(said[1]:find("GradScaler: overflows have reduced the scale", 1, true))
        fails("value", "'init_scale' is 1e-40", yoke.GradScaler, { init_scale = 1e-40 })
    end)
end)

describe("optim.EMA", function()
    it("follows the parameters and changes places with them", function()
        local x = parameter(1.)
        local ema <close> = optim.EMA({ x }, 0.75)
        do
            local _ <close> = yoke.no_grad()
            x:fill_(3.)
        end
        ema:update()
        assert.equal(1.5, ema:averages()[1]:item())
        ema:swap()
        assert.same({ 1.5, 1.5 }, { x:item(), ema:averages()[1]:item() })
        ema:swap()
        assert.same({ 3.0, 1.5 }, { x:item(), ema:averages()[1]:item() })
        ema:copy_to_params()
        assert.equal(1.5, x:item())
        fails("value", "'decay' is 2", optim.EMA, { x }, 2)
        fails("type", "params", optim.EMA, x, 0.5)
    end)

    it("is applied in a scope, which loses nothing when it is nested", function()
        local x = parameter(8.)
        local ema <close> = optim.EMA({ x }, 0.5)
        yoke.no_grad(function() x:fill_(0.) end)
        ema:update()
        do
            local _ <close> = ema:applied()
            assert.equal(4.0, ema:applied(function() return x:item() end))
            assert.equal(4.0, x:item())
            fails("state", "put the parameters back first", ema.update, ema)
            fails("state", "put the parameters back first", ema.copy_to_params, ema)
            fails("state", "leave the scope first", ema.swap, ema)
        end
        assert.equal(0.0, x:item())
        ema:swap()
        assert.equal(4.0, ema:applied(function() return x:item() end))
        assert.equal(4.0, x:item())
        ema:swap()
        assert.is_false(pcall(ema.applied, ema, error))
        assert.same({ 0.0, 4.0 }, { x:item(), ema:averages()[1]:item() })
        fails("type", "'fn'", ema.applied, ema, 3)
    end)
end)

describe("optim.schedule", function()
    local function rates(make, count)
        local optimizer = optim.SGD({ { params = { parameter(1.) }, lr = 0.5 }, { params = { parameter(1.) } } }, { lr = 2 })
        local schedule, seen = make(optim.schedule, optimizer), {}
        for i = 0, count do
            seen[i] = schedule:last_lr()
            schedule:step()
        end
        return seen
    end

    it("follows the formulas, group by group", function()
        local constant = rates(function(s, o) return s.constant(o, 0.5, 2) end, 3)
        assert.same({ { 0.25, 1.0 }, { 0.5, 2.0 } }, { constant[1], constant[2] })
        local step = rates(function(s, o) return s.step(o, 2, 0.5) end, 4)
        assert.same({ { 0.5, 2.0 }, { 0.25, 1.0 }, { 0.125, 0.5 } }, { step[1], step[2], step[4] })
        local cosine = rates(function(s, o) return s.cosine(o, 6, { warmup_steps = 2, min_lr = 0.1 }) end, 7)
        near(2 / 3, cosine[0][2])
        near(2, cosine[2][2])
        near(0.1 + 1.9 / 2, cosine[4][2])
        near(0.1, cosine[7][1])
        local cycle = rates(function(s, o) return s.one_cycle(o, 1, 10, { div_factor = 10, final_div_factor = 100 }) end, 11)
        near(0.1, cycle[0][1])
        near(1, cycle[2][2])
        near(0.001, cycle[11][1])
    end)

    it("goes on where its state was", function()
        local optimizer = optim.SGD({ parameter(1.) }, { lr = 1 })
        local schedule = optim.schedule.step(optimizer, 1, 0.5)
        schedule:step()
        local state = schedule:state_dict()
        schedule:step()
        schedule:load_state_dict(state)
        assert.equal(0.5, optimizer:get_lr())
        fails("value", "'step_size' is 0", optim.schedule.step, optimizer, 0)
        fails("value", "pct_start", optim.schedule.one_cycle, optimizer, 1, 5, { pct_start = 2 })
    end)
end)
