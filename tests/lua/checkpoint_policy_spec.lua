-- Functions that decide for a checkpoint scope: called once, as the scope closes, and at no other time.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local function leaf(...) return yoke.randn({ ... }):requires_grad_() end

-- Returns whether saved tensors of ops made now are dropped.
local function dropped()
    local x = yoke.ones({ 4 }):requires_grad_()
    return yoke.saved_tensors((x * 2.0):tanh())[1].recomputed
end

describe("a policy's function", function()
    it("decides once for each op that something needs", function()
        local x, w, told = leaf(3, 4), leaf(5, 4), {}
        local y = yoke.checkpoint({
            policy = function(op)
                told[#told + 1] = op
                return op.name == "linear" and "keep" or "recompute"
            end,
        }, function() return yoke.linear(x, w):tanh():exp() end)
        y:sum():backward()
        local names = {}
        for i, op in ipairs(told) do names[i] = op.name end
        assert.same({ "linear", "tanh", "exp" }, names)
        assert.same({ name = "linear", shape = { 3, 5 }, dtype = "float32", bytes = 60, work = 120.0 }, told[1])
    end)

    it("that raises or answers otherwise closes the scope, and nothing is kept", function()
        local x = leaf(4)
        local function make() return (x * 2.0):tanh():exp():sum() end
        local expected = yoke.grad(make(), x)[1]:tolist()
        local mine = {}
        for _, policy in ipairs {
            function() error(mine) end, function() return "hold" end, function() end, function() coroutine.yield() end,
        } do
            local made
            local scope = yoke.checkpoint_scope { policy = policy }
            made = make()
            local ok, err = pcall(scope.close, scope)
            assert.is_false(ok)
            if err ~= mine and type(err) == "table" then
                assert.equal("value", err.code)
                assert.truthy(err.message:find "'policy' returned %w+ for %w+; it must return \"keep\", \"recompute\" or \"offload\"")
            end
            assert.is_false(dropped())
            fails("state", "already closed", scope.close, scope)
            assert.same(expected, yoke.grad(made, x)[1]:tolist())
            ok = pcall(yoke.checkpoint, { policy = policy }, make)
            assert.is_false(ok)
            assert.is_false(dropped())
        end
    end)

    it("is not asked by the collector", function()
        local x, asked, inner = leaf(4), 0, nil
        local function policy()
            asked = asked + 1
            return "keep"
        end
        local y
        do
            local alone = yoke.checkpoint_scope { policy = policy }
            y = (x * 2.0):tanh()
            alone = nil
        end
        collectgarbage()
        collectgarbage()
        assert.is_false(dropped())
        do
            local outer = yoke.checkpoint_scope { policy = policy }
            y = y + (x * 3.0):exp()
            inner = yoke.checkpoint_scope { policy = policy }
            y = y:tanh()
            outer = nil
        end
        collectgarbage()
        collectgarbage()
        inner:close()
        local before = asked
        assert.is_true(before > 0)
        assert.same(yoke.grad(((x * 2.0):tanh() + (x * 3.0):exp()):tanh():sum(), x)[1]:tolist(), yoke.grad(y:sum(), x)[1]:tolist())
        assert.equal(before, asked)
    end)
end)

describe("offload", function()
    it("changes no bit, and is true or false and not for budgets", function()
        local x, w = leaf(6, 4), leaf(5, 4)
        local function make() return yoke.linear(x, w):tanh():exp():sum() end
        local expected = yoke.grad(make(), x)[1]:tolist()
        for _, policy in ipairs { "full", "matmul", { "tanh" }, function() return "offload" end } do
            local loss = yoke.checkpoint({ policy = policy, offload = true }, make)
            assert.same(expected, yoke.grad(loss, x)[1]:tolist())
        end
        fails("type", "option 'offload' is a number; it takes true or false", yoke.checkpoint_scope, { offload = 3 })
        fails("value", "'offload' is 1, but 'policy' is \"budget\"", yoke.checkpoint_scope, { policy = yoke.MemoryBudget(0.5), offload = true })
        assert.is_false(dropped())
    end)
end)
