-- Checkpoint scopes: every number has the same bits as without scopes. A scope belongs to its coroutine.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn = yoke.nn

local policies = { false, "full", "matmul", { "gelu", "layer_norm", "dropout", "mul" },
    function(op) return (op.bytes < 200 or op.name == "linear") and "keep" or "recompute" end }

-- No test closes these tensors by hand: the collection after the test frees them.
local function leaf(...) return yoke.randn({ ... }):requires_grad_() end

local function block() return nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) end

local function energy(x) return (x * x):sum() end

local function append_gradients(list, ...)
    for _, x in ipairs { ... } do list[#list + 1] = x.grad end
    return list
end

local function of_net(list, net)
    for _, p in ipairs(net:parameters()) do list[#list + 1] = p.grad end
    for _, buffer in ipairs(net:buffers()) do list[#list + 1] = buffer end
    return list
end

-- Results of a step; `within(fn, ...)` runs the parts of the step.
local cases = {}

function cases.dropout(within)
    local net, x = nn.Sequential(block(), nn.Dropout(0.5), block()), leaf(4, 8)
    local y = x
    for _, layer in net:children() do y = within(layer, y) end
    energy(y):backward()
    return of_net(append_gradients({ y }, x), net)
end

function cases.tied_weights(within)
    local weight, index, target = leaf(12, 8), yoke.tensor { 1, 5, 5, 0 }, yoke.tensor { 1, 2, 3, 4 }
    local y = within(function() return yoke.embedding(index, weight):gelu() end)
    local loss = within(function() return yoke.linear(y, weight):cross_entropy(target) end)
    loss:backward()
    return append_gradients({ loss }, weight)
end

function cases.grouped_heads(within)
    local layer = nn.MultiheadAttention(16, 4, { num_kv_heads = 2, dropout = 0.2, causal = true })
    local x = leaf(2, 5, 16)
    local y = within(layer, x)
    energy(y):backward()
    return of_net(append_gradients({ y }, x), layer)
end

function cases.batch_norm(within)
    local net, x = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)), leaf(5, 4)
    local y
    for _ = 1, 2 do
        y = within(net, x)
        y:sum():backward()
    end
    return of_net(append_gradients({ y }, x), net)
end

function cases.in_place_chains_views_and_masks(within)
    local x, w = leaf(4, 4), leaf(4, 4)
    local y = within(function()
        local y = x:matmul(w)
        y:add_(1.0):mul_(0.5)
        local z = (y * 0.1):exp()
        y:tanh_()
        local mask = yoke.no_grad(function() return yoke.rand { 4, 4 }:lt(0.5):to "float32" end)
        z = (z * y):transpose(0, 1):reshape { 2, 8 }:slice(1, 1, 7)
        return z * z * yoke.tensor { 1.0, 2.0, 3.0, 4.0, 5.0, 6.0 } + yoke.randn { 2, 6 } * z + mask:sum() * z
    end)
    energy(y):backward()
    return append_gradients({ y }, x, w)
end

for _, cache in ipairs { true, false } do
    cases["autocast, cache " .. tostring(cache)] = function(within)
        local net, x, weight = block(), leaf(4, 8), leaf(8, 8)
        local y = yoke.autocast({ dtype = "bfloat16", cache_enabled = cache }, function()
            local y = yoke.linear(x, weight)
            y = within(function() return yoke.linear(net(y), weight):tanh() end)
            y = within(function() return yoke.linear(net(y), weight) end)
            return yoke.linear(y, weight)
        end)
        energy(y:to "float32"):backward()
        return of_net(append_gradients({ y }, x, weight), net)
    end
end

function cases.a_scaled_loss(within)
    local net, x = block(), yoke.randn { 4, 8 }
    local optimizer = yoke.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
    local scaler, loss = yoke.GradScaler { init_scale = 1024.0 }, nil
    for _ = 1, 3 do
        optimizer:zero_grad()
        local y = yoke.autocast({ dtype = "bfloat16" }, within, net, x)
        loss = energy(y:to "float32")
        scaler:scale(loss):backward()
        scaler:step(optimizer)
        scaler:update()
    end
    return { loss, table.unpack(net:parameters()) }
end

function cases.retained_twice_and_grad(within)
    local net, x = block(), leaf(4, 8)
    local loss = energy(within(net, x))
    loss:backward { retain_graph = true }
    loss:backward { retain_graph = true }
    return of_net({ x.grad, table.unpack(yoke.grad(loss, net:parameters())) }, net)
end

function cases.three_nested(within)
    local a, b, c, x = block(), block(), block(), leaf(4, 8)
    local y = within(function()
        local y = a(x)
        return a(within(function()
            local z = b(y) * y
            return b(within(function() return c(z) * z end)) + y * z
        end))
    end)
    y:sum():backward()
    return of_net(of_net(of_net(append_gradients({ y }, x), a), b), c)
end

function cases.a_captured_step(within)
    local net, x = nn.Sequential(block(), nn.Dropout(0.3), block()), yoke.randn { 4, 8 }
    for _, p in ipairs(net:parameters()) do p.grad = yoke.zeros(p.shape) end
    local graph, y = yoke.Graph(), x
    graph:capture(function()
        net:zero_grad(false)
        for _, layer in net:children() do y = within(layer, y) end
        energy(y):backward()
    end)
    for _ = 1, 2 do graph:replay() end
    return of_net({ y }, net)
end

local function bits(list)
    for i, x in ipairs(list) do list[i] = x:to("float64"):tolist() end
    return list
end

local function run(case, within)
    yoke.manual_seed(7)
    local left = bits(case(within))
    return { left, yoke.get_rng_state():tolist() }
end

local function plain(fn, ...) return fn(...) end

-- Returns whether saved tensors of ops made now are dropped, judged by the effect.
local function dropped()
    local x <close> = yoke.ones({ 4 }):requires_grad_()
    local y <close> = x * 2.0
    local z <close> = y:tanh()
    return yoke.saved_tensors(z)[1].recomputed
end

describe("checkpoint", function()
    for name, case in pairs(cases) do
        it("changes no bit: " .. name, function()
            local expected = run(case, plain)
            for _, policy in ipairs(policies) do
                assert.same(expected, run(case, function(...) return yoke.checkpoint({ policy = policy or nil }, ...) end))
            end
        end)
    end

    it("calls the function once and hands on what it is given and gives", function()
        local calls = 0
        local results = table.pack(yoke.checkpoint({ policy = "matmul" }, function(...)
            calls = calls + 1
            return dropped(), select("#", ...), ...
        end, 1, nil, "x"))
        assert.same({ true, 3, 1, nil, "x", n = 5 }, results)
        assert.equal(1, calls)
        assert.is_true(yoke.checkpoint(dropped))
        assert.is_false(dropped())
        assert.equal(5, yoke.checkpoint(nn.Sequential(), 5))
    end)

    it("passes errors through and closes", function()
        local ok, err = pcall(yoke.checkpoint, function() error({ "mine" }) end)
        assert.is_false(ok)
        assert.same({ "mine" }, err)
        assert.is_false(dropped())
        local co = coroutine.wrap(function() return yoke.checkpoint(function() return coroutine.yield(dropped()), dropped() end) end)
        assert.is_true(co())
        assert.is_false(dropped())
        assert.same({ 8, true }, { co(8) })
    end)

    it("takes no memory behind a backward or a dropped loss", function()
        local net, x = block(), yoke.randn { 4, 8 }
        for _, p in ipairs(net:parameters()) do p.grad = yoke.zeros(p.shape) end
        for _, policy in ipairs(policies) do
            for _, ends in ipairs { function(loss) loss:backward() end, function() end } do
                collectgarbage()
                collectgarbage()
                local before = yoke.memory_allocated()
                ends(yoke.checkpoint({ policy = policy or nil }, net, x):sum())
                collectgarbage()
                collectgarbage()
                assert.equal(before, yoke.memory_allocated())
            end
        end
    end)

    it("refuses policies that are none, and what is no function", function()
        for _, call in ipairs { "checkpoint", "checkpoint_scope" } do
            local function refused(code, parts, policy) fails(code, parts, yoke[call], { policy = policy }, print) end
            if call == "checkpoint_scope" then
                refused = function(code, parts, policy) fails(code, parts, yoke.checkpoint_scope, { policy = policy }) end
            end
            refused("value", { "'policy' is 'ful'", "did you mean 'full'" }, "ful")
            refused("value", { "'policy' is 'ops'", '{"gelu"}', "or a MemoryBudget" }, "ops")
            refused("value", { "'sofmax', which is not an op", "'softmax'" }, { "sofmax" })
            refused("type", { call, "'policy' has a number at place 2" }, { "gelu", 3 })
            refused("type", { call, "'policy' is a number" }, 3)
        end
        fails("value", { "no option 'polcy'", "'policy'" }, yoke.checkpoint, { polcy = 1 }, print)
        fails("type", { "checkpoint", "'options' is a number" }, yoke.checkpoint, 3, print)
        fails("type", { "checkpoint", "'fn' is missing" }, yoke.checkpoint, {})
        fails("type", { "checkpoint", "'fn' is a number; it takes a function" }, yoke.checkpoint, 3)
        fails("type", { "checkpoint_scope", "'options' is a string" }, yoke.checkpoint_scope, "full")
        assert.is_false(dropped())
    end)
end)

describe("checkpoint_scope", function()
    it("is a scope that closes, and nests", function()
        do
            local _ <close> = yoke.checkpoint_scope()
            assert.is_true(dropped())
            do
                local _ <close> = yoke.checkpoint_scope { policy = { "tanh" } }
                assert.is_false(dropped())
            end
            assert.is_true(dropped())
        end
        assert.is_false(dropped())
    end)

    it("is its coroutine's", function()
        local function body()
            local x = yoke.ones({ 4 }):requires_grad_()
            local _ <close> = yoke.checkpoint_scope()
            local y = (x * 2.0):tanh()
            coroutine.yield(dropped())
            y = (y * y):exp()
            coroutine.yield(dropped())
            energy(y):backward()
            return x.grad:tolist()
        end
        local a, b = coroutine.wrap(body), coroutine.wrap(body)
        assert.same({ true, true }, { a(), b() })
        assert.is_false(dropped())
        do
            local _ <close> = yoke.checkpoint_scope()
            assert.is_false(coroutine.wrap(dropped)())
            assert.same({ true, true }, { a(), b() })
        end
        local one = a()
        assert.same(one, b())
        assert.is_false(dropped())
    end)

    it("is closed once, in order, and where it was opened", function()
        local outer, inner = yoke.checkpoint_scope(), yoke.checkpoint_scope()
        fails("state", "close its inner scopes first", outer.close, outer)
        assert.is_true(dropped())
        inner:close()
        fails("state", "opened in another coroutine; close it there", coroutine.wrap(outer.close), outer)
        assert.is_true(dropped())
        outer:close()
        fails("state", "already closed", outer.close, outer)
        assert.is_false(dropped())
        do
            local scope <close> = yoke.checkpoint_scope()
            scope:close()
        end
        local co = coroutine.create(function()
            local _ <close> = yoke.checkpoint_scope()
            coroutine.yield()
        end)
        coroutine.resume(co)
        assert.is_true(coroutine.close(co))
    end)

    it("goes where nobody closes it, and waits for one within", function()
        local x = yoke.ones({ 4 }):requires_grad_()
        local inner, y
        do
            local outer = yoke.checkpoint_scope()
            y = (x * 2.0):tanh()
            inner = yoke.checkpoint_scope()
            y = y:exp()
            outer = nil
        end
        collectgarbage()
        collectgarbage()
        assert.is_true(dropped())
        y = energy(y)
        inner:close()
        assert.is_false(dropped())
        y:backward()
        assert.same(yoke.grad(energy((x * 2.0):tanh():exp()), x)[1]:tolist(), x.grad:tolist())
        coroutine.wrap(function()
            local scope = yoke.checkpoint_scope()
            coroutine.yield(scope)
        end)()
        collectgarbage()
        collectgarbage()
        assert.is_false(dropped())
    end)

    it("names what was changed since", function()
        local x, shift = yoke.ones({ 4 }):requires_grad_(), yoke.ones { 4 }
        local y = yoke.checkpoint(function() return (x + shift):tanh() end)
        shift:mul_(2.0)
        fails("state", { "backward of tanh", "mul_ has changed" }, function() y:sum():backward() end)
    end)
end)

describe("checkpoint_sequential and checkpoint_", function()
    it("cut a list of functions into segments and keep the last", function()
        local net, x = nn.Sequential(block(), block(), block(), block(), block()), leaf(4, 8)
        local list = {}
        for _, layer in net:children() do list[#list + 1] = layer end
        local y = net(x)
        local expected = { y:tolist(), yoke.grad(y:sum(), x)[1]:tolist() }
        for _, fns in ipairs { net, list } do
            for _, segments in ipairs { 1, 2, 3, 5 } do
                y = yoke.checkpoint_sequential(fns, segments, x)
                assert.is_false(yoke.saved_tensors(y)[1].recomputed)
                assert.same(expected, { y:tolist(), yoke.grad(y:sum(), x)[1]:tolist() })
            end
        end
        fails("value", { "'segments' is 6, for 5 functions" }, yoke.checkpoint_sequential, net, 6, x)
        fails("value", { "'segments' is 0" }, yoke.checkpoint_sequential, net, 0, x)
        fails("type", { "'fns' is 5" }, yoke.checkpoint_sequential, 5, 1, x)
        fails("value", { "'fns' is empty; it takes at least one function" }, yoke.checkpoint_sequential, {}, 1, x)
    end)

    it("make each call of a module a scope", function()
        local net, x = nn.Sequential(block(), block()), leaf(4, 8)
        local function recomputed() return yoke.saved_tensors(net(x))[1].recomputed end
        assert.is_false(recomputed())
        for _, each in ipairs { {}, { true }, { "matmul" } } do
            assert.equal(net[1], net[1]:checkpoint_(each[1]))
            assert.is_true(recomputed())
        end
        assert.equal(net[1], net[1]:checkpoint_(false))
        assert.is_false(recomputed())
        fails("value", "did you mean 'matmul'", net[1].checkpoint_, net[1], "matmull")
    end)
end)
