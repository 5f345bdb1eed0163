-- Gradients, and the grad modes of each coroutine.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local function leaf(...) return yoke.tensor({ ... }, { dtype = "float32", requires_grad = true }) end

describe("backward", function()
    it("adds gradients up in the leaves", function()
        local x = leaf(1, 2, 3)
        local y = (x * x):sum()
        assert.is_false(y.is_leaf)
        y:backward()
        assert.same({ 2.0, 4.0, 6.0 }, x.grad:tolist())
        local again = (x * x):sum()
        again:backward()
        assert.same({ 4.0, 8.0, 12.0 }, x.grad:tolist())
        x:zero_grad(false)
        assert.same({ 0.0, 0.0, 0.0 }, x.grad:tolist())
        x:zero_grad()
        assert.is_nil(x.grad)
    end)

    it("takes a gradient and retain_graph, by place and by name", function()
        local x = leaf(1, 2)
        local y = x * x
        y:backward(yoke.tensor({ 1., 10. }), true)
        y:backward { gradient = yoke.tensor({ 1., 10. }) }
        assert.same({ 4.0, 80.0 }, x.grad:tolist())
    end)

    it("refuses a second time, a tensor of many elements, one without a record", function()
        local x = leaf(1, 2)
        local y = (x * x):sum()
        y:backward()
        fails("state", { "backward", "retain_graph" }, y.backward, y)
        fails("value", "gradient", function() (x * x):backward() end)
        fails("value", { "gradien" }, function() (x * x):backward { gradien = x } end)
        assert.has_error(function() yoke.tensor(1.5):backward() end)
    end)

    it("refuses an in-place change of a leaf that requires grad, and sees one of a saved tensor", function()
        local x = leaf(1, 2)
        fails("state", { "add_", "'x'", "no_grad" }, x.add_, x, 1)
        fails("state", "no_grad", x.copy_from_string, x, ("\0"):rep(8))
        local y = yoke.tensor({ 1., 2. })
        local z = (x * y):sum()
        y:add_(1)
        fails("state", { "mul", "add_" }, z.backward, z)
        yoke.no_grad(x.add_, x, 1)
        assert.same({ 2.0, 3.0 }, x:tolist())
    end)

    it("keeps grad and requires_grad as fields that can be set", function()
        local x = yoke.zeros({ 2 })
        x.requires_grad = true
        x.grad = yoke.ones({ 2 })
        assert.same({ 1.0, 1.0 }, x.grad:tolist())
        x.grad = nil
        assert.is_nil(x.grad)
        fails("value", { "3", "2" }, function() x.grad = yoke.ones({ 3 }) end)
        fails("type", "number", function() x.requires_grad = 1 end)
        fails("type", "int64", function() yoke.arange(2):requires_grad_() end)
        assert.is_false(x:requires_grad_(false).requires_grad)
    end)
end)

describe("yoke.grad", function()
    it("returns gradients and leaves the leaves alone", function()
        local x, w = leaf(1, 2), leaf(3, 4)
        local grads = yoke.grad((x * w):sum(), { x, w })
        assert.same({ 3.0, 4.0 }, grads[1]:tolist())
        assert.same({ 1.0, 2.0 }, grads[2]:tolist())
        assert.is_nil(x.grad)
        local weighted = yoke.grad({ x * w }, { x }, { grad_outputs = { yoke.tensor({ 1., 10. }) } })
        assert.same({ 3.0, 40.0 }, weighted[1]:tolist())
    end)

    it("refuses what does not fit", function()
        local x, other = leaf(1, 2), leaf(3)
        fails("value", "input", function() yoke.grad((x * x):sum(), { other }) end)
        fails("value", { "'grad_outputs' has 2 items", "1 outputs" }, function()
            yoke.grad({ x * x }, { x }, { grad_outputs = { x, x } })
        end)
        fails("type", "outputs", yoke.grad, 5, { x })
        fails("type", "inputs", yoke.grad, { (x * x):sum() }, { 5 })
    end)
end)

describe("no_grad", function()
    it("holds while its variable lives", function()
        local x = leaf(1, 2)
        do
            local _ <close> = yoke.no_grad()
            assert.is_false((x * x).requires_grad)
            do
                local _ <close> = yoke.enable_grad()
                assert.is_true((x * x).requires_grad)
            end
            assert.is_false((x * x).requires_grad)
            assert.is_false(yoke.is_grad_enabled())
        end
        assert.is_true((x * x).requires_grad)
        assert.is_true(yoke.is_grad_enabled())
    end)

    it("runs a function and returns all it returns", function()
        local x = leaf(1, 2)
        local a, b, c = yoke.no_grad(function(p, q) return (x * x).requires_grad, p, q end, 1, nil)
        assert.same({ false, 1 }, { a, b })
        assert.is_nil(c)
    end)

    it("ends when the function raises, and lets the error through as it is", function()
        local mark = {}
        local ok, err = pcall(yoke.no_grad, function() error(mark) end)
        assert.is_false(ok)
        assert.equal(mark, err)
        assert.is_true(yoke.is_grad_enabled())
        pcall(function()
            local _ <close> = yoke.no_grad()
            error "again"
        end)
        assert.is_true(yoke.is_grad_enabled())
    end)

    it("belongs to its coroutine: a yield switches nothing off for others", function()
        local x = leaf(1, 2)
        local inside = coroutine.wrap(function()
            local _ <close> = yoke.no_grad()
            while true do coroutine.yield((x * x).requires_grad) end
        end)
        for _ = 1, 3 do
            assert.is_false(inside())
            assert.is_true((x * x).requires_grad)
        end
        local called = coroutine.wrap(function()
            return yoke.no_grad(function()
                coroutine.yield((x * x).requires_grad)
                return (x * x).requires_grad
            end)
        end)
        assert.is_false(called())
        assert.is_true((x * x).requires_grad)
        local _ <close> = yoke.no_grad()
        assert.is_true(coroutine.wrap(function() return (x * x).requires_grad end)())
        assert.is_false(called())
    end)

    it("ends with a coroutine that is never resumed", function()
        for _ = 1, 100 do
            coroutine.wrap(function()
                local _ <close> = yoke.no_grad()
                coroutine.yield()
            end)()
        end
        collectgarbage()
        collectgarbage()
        for _ = 1, 100 do
            assert.is_true(coroutine.wrap(function() return yoke.is_grad_enabled() end)())
        end
    end)

    it("may be closed in any order, and more than once", function()
        local a, b = yoke.no_grad(), yoke.enable_grad()
        a:close()
        assert.is_true(yoke.is_grad_enabled())
        b:close()
        b:close()
        assert.is_true(yoke.is_grad_enabled())
        fails("type", "a function", yoke.no_grad, 5)
    end)
end)
