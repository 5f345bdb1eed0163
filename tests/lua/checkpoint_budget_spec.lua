-- Memory budgets: results keep every bit, a step takes the foreseen memory, and misuse raises an error and leaves no
-- scope open.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn = yoke.nn

local function block() return nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) end

local function made()
    yoke.manual_seed(3)
    local net, x = nn.Sequential(block(), nn.Dropout(0.5), block(), block()), yoke.randn { 16, 8 }
    for _, p in ipairs(net:parameters()) do p.grad = yoke.zeros(p.shape) end
    return net, x
end

local function forward(net, x)
    for _, layer in net:children() do x = x + layer(x) end
    return (x * x):sum()
end

-- The loss and all gradients of a step, and where the random numbers stand.
local function step(net, x, within, ...)
    yoke.manual_seed(5)
    for _, p in ipairs(net:parameters()) do p.grad:zero_() end
    local loss = within(forward, net, x, ...)
    loss:backward()
    local all = { loss:item(), yoke.get_rng_state():tolist() }
    for _, p in ipairs(net:parameters()) do all[#all + 1] = p.grad:tolist() end
    return all
end

local function plain(fn, ...) return fn(...) end

local function under(budget)
    return function(fn, ...) return yoke.checkpoint({ policy = budget }, fn, ...) end
end

-- Returns whether a budget serves a step.
local function is_usable(budget)
    local x = yoke.ones({ 8 }):requires_grad_(true)
    local loss = yoke.checkpoint({ policy = budget }, function() return (x * 2.0):tanh():sum() end)
    loss:backward()
    return math.abs(x.grad:tolist()[1] - 2 * (1 - math.tanh_of_two ^ 2)) < 1e-6
end
math.tanh_of_two = (math.exp(4) - 1) / (math.exp(4) + 1)

describe("MemoryBudget", function()
    it("changes no bit, and its figures are those of its steps", function()
        local net, x = made()
        local expected = step(net, x, plain)
        for _, amount in ipairs { 0.5, 1, "1KiB", "0.7", 1e-9 } do
            local budget = yoke.MemoryBudget(amount)
            for name, value in pairs(budget:report()) do assert.equal(0, value, name) end
            for steps = 1, 3 do
                assert.same(expected, step(net, x, under(budget)))
                local report = budget:report()
                assert.equal(steps, report.steps)
                assert.equal(1, report.forwards)
                assert.is_true(report.plain_peak > 0 and report.peak > 0 and report.measured_peak >= report.measured_held)
                assert.equal(amount == "1KiB" and 1024 or math.tointeger(report.limit), report.limit)
            end
        end
    end)

    it("is a policy of scopes and modules, too", function()
        local net, x = made()
        local expected, budget = step(net, x, plain), yoke.MemoryBudget(0.5)
        for _ = 1, 3 do
            assert.same(expected, step(net, x, function(fn, ...)
                local _ <close> = yoke.checkpoint_scope { policy = budget }
                local _ <close> = yoke.checkpoint_scope { policy = "matmul" }
                local _ <close> = yoke.checkpoint_scope { policy = budget }
                return fn(...)
            end))
        end
        assert.equal(3, budget:report().steps)
        for _, layer in net:children() do layer:checkpoint_(yoke.MemoryBudget(0.5)) end
        for _ = 1, 2 do assert.same(expected, step(net, x, plain)) end
    end)

    it("has one forward at a time", function()
        local budget = yoke.MemoryBudget(0.5)
        local co = coroutine.create(function()
            local _ <close> = yoke.checkpoint_scope { policy = budget }
            coroutine.yield()
        end)
        assert(coroutine.resume(co))
        fails("state", { "checkpoint_begin", "memory budget that is in use by an open scope" },
            yoke.checkpoint, { policy = budget }, print)
        assert.equal(0, budget:report().steps)
        assert(coroutine.resume(co))
        assert.is_true(is_usable(budget))
        co = coroutine.create(function()
            local _ <close> = yoke.checkpoint_scope { policy = budget }
            coroutine.yield()
        end)
        assert(coroutine.resume(co))
        coroutine.close(co)
        assert.is_true(is_usable(budget))
        local ok, err = pcall(yoke.checkpoint, { policy = budget }, function() error({ "mine" }) end)
        assert.is_false(ok)
        assert.same({ "mine" }, err)
        assert.is_true(is_usable(budget))
    end)

    it("refuses amounts that are none", function()
        for amount, part in pairs { [0] = "'0'; give a share", [-1] = "'-1'", [2] = "a share above 1", ["2"] = "without their unit",
            ["2Gub"] = "did you mean 'GB'", [""] = "above 0", GiB = "'GiB'", ["0.5x"] = "'x' is not a unit", [1 / 0] = "'inf'" } do
            fails("value", { "memory_budget_create", part }, yoke.MemoryBudget, amount)
        end
        fails("value", { "nan" }, yoke.MemoryBudget, 0 / 0)
        for _, amount in ipairs { true, {}, print } do fails("type", { "MemoryBudget", "'amount'" }, yoke.MemoryBudget, amount) end
        fails("value", { "MemoryBudget" }, yoke.MemoryBudget)
        fails("value", { "'policy' is 'budget'", "MemoryBudget" }, yoke.checkpoint, { policy = "budget" }, print)
    end)
end)
