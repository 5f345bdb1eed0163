-- Hooks on gradients, retained gradients, functions with a backward of their own, and the search for NaN.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local leak_free, fails = support.leak_free(it), support.fails

-- A state forgets the function of a hook in the collection after that of the hook's tensor.
local function it(name, test)
    leak_free(name, function()
        test()
        for _ = 1, 4 do collectgarbage() end
    end)
end

local function leaf(...) return yoke.tensor({ ... }, { dtype = "float32", requires_grad = true }) end

-- The values of a tensor as text.
local function shown(tensor) return tensor and table.concat(tensor:tolist(), " ") or "none" end

describe("hooks of a tensor", function()
    it("see the whole gradient of a leaf before the leaf adds it", function()
        local x, seen = leaf(1, 2), {}
        x:register_hook(function(g) seen[#seen + 1] = shown(g) end)
        for _ = 1, 2 do (x * 3 + x * x):sum():backward() end
        assert.same({ "5.0 7.0", "5.0 7.0" }, seen)
        assert.equal("10.0 14.0", shown(x.grad))
    end)

    it("replace the gradient in their order until they are removed", function()
        local x, order = leaf(1), {}
        local handle = x:register_hook(function(g) order[#order + 1] = "first" return g * 2 end)
        x:register_hook(function(g) order[#order + 1] = "second" return g + 1 end)
        local y = x * 5
        y:register_hook(function(g) return g * 10 end)
        y:sum():backward()
        assert.equal("101.0", shown(x.grad))
        handle:remove()
        handle:remove()
        x:zero_grad();
        (x * 1):sum():backward()
        assert.equal("2.0", shown(x.grad))
        assert.same({ "first", "second", "second" }, order)
    end)

    it("run without recording, and for yoke.grad", function()
        local x, mode = leaf(2), nil
        local y = x * x
        y:register_hook(function(g) mode = yoke.is_grad_enabled() return (x * g):detach() end)
        do
            local _ <close> = yoke.enable_grad()
            assert.equal("8.0", shown(yoke.grad(y:sum(), x)[1]))
        end
        assert.is_false(mode)
        assert.is_nil(x.grad)
    end)

    it("may raise any value, which leaves backward", function()
        local x, mine = leaf(1), { of = "mine" }
        local handle = x:register_hook(function() error(mine) end)
        local ok, raised = pcall(function() (x * 2):sum():backward() end)
        assert.is_false(ok)
        assert.equal(mine, raised)
        handle:remove()
        x:register_hook(function() error("a text", 0) end)
        ok, raised = pcall(yoke.grad, (x * 2):sum(), x)
        assert.is_false(ok)
        assert.equal("a text", raised)
        assert.is_nil(x.grad)
    end)

    it("may run a backward, remove themselves and close tensors", function()
        local x, other, calls = leaf(1), leaf(3), 0
        local handle
        handle = x:register_hook(function(g)
            calls = calls + 1
            handle:remove()
            yoke.enable_grad(function() (other * 4):sum():backward() end)
            g:close()
            collectgarbage()
        end)
        for _ = 1, 2 do (x * 2):sum():backward() end
        assert.equal(1, calls)
        assert.equal("4.0", shown(other.grad))
        assert.equal("4.0", shown(x.grad))
    end)

    it("refuse wrong results and wrong calls", function()
        local x = leaf(1, 2)
        for _, case in ipairs { { yoke.ones(3), "value", "returned [3] float32" }, { x:detach():double(), "type", "float64" } } do
            local handle = x:register_hook(function() return case[1] end)
            fails(case[2], case[3], function() (x * 2):sum():backward() end)
            handle:remove()
        end
        local handle = x:register_hook(function() return 3 end)
        fails("type", { "the hook's result", "a tensor or nil" }, function() (x * 2):sum():backward() end)
        handle:remove()
        fails("state", "does not require grad", function() yoke.ones(1):register_hook(print) end)
        fails("type", { "register_hook", "'hook'", "a function" }, function() x:register_hook(3) end)
        fails("state", "does not require grad", function() yoke.ones(1):retain_grad() end)
    end)

    it("belong to their state alone, and their functions are forgotten with the tensor", function()
        local gone = setmetatable({}, { __mode = "v" })
        do
            local x, big = leaf(1), {}
            gone[1] = big
            x:register_hook(function() return big and nil end)
            x = nil
        end
        for _ = 1, 3 do collectgarbage() end
        assert.is_nil(gone[1])
    end)

    it("run in a coroutine too", function()
        local x, seen = leaf(1), 0
        x:register_hook(function() seen = seen + 1 end)
        coroutine.wrap(function() (x * 2):sum():backward() end)()
        assert.equal(1, seen)
        local y = leaf(1)
        y:register_hook(function() coroutine.yield() end)
        local ok, raised = coroutine.resume(coroutine.create(function() (y * 2):sum():backward() end))
        assert.is_false(ok)
        assert.truthy(tostring(raised):find "yield")
    end)
end)

describe("a result of an op", function()
    it("retains its gradient on demand", function()
        local x = leaf(1)
        local y = x * 2
        assert.is_false(y.retains_grad)
        y:retain_grad()
        assert.is_true(y.retains_grad)
        for _ = 1, 2 do (y * 3):sum():backward { retain_graph = true } end
        assert.equal("6.0", shown(y.grad))
        x:retain_grad()
        assert.is_false(x.retains_grad)
    end)

    it("may be an input of backward, alone", function()
        local x, w = leaf(2), leaf(3)
        local y = x * w
        y:sum():backward { inputs = { x, y }, retain_graph = true }
        assert.equal("3.0 none 1.0", table.concat({ shown(x.grad), shown(w.grad), shown(y.grad) }, " "))
        y:sum():backward(nil, false, false, w)
        assert.equal("2.0", shown(w.grad))
        fails("value", "'inputs' is empty", function() (x * 2):sum():backward { inputs = {} } end)
        fails("type", "inputs", function() (x * 2):sum():backward { inputs = 3 } end)
    end)
end)

describe("the words of grad", function()
    it("give false for an unused input on demand, and refuse a graph of gradients", function()
        local x, w = leaf(2), leaf(3)
        local grads = yoke.grad((x * 2):sum(), { x, w }, { allow_unused = true })
        assert.equal("2.0", shown(grads[1]))
        assert.is_false(grads[2])
        fails("value", "no output depends on input 1", yoke.grad, (x * 2):sum(), { x, w })
        fails("unsupported", "no second-order gradients", yoke.grad, (x * 2):sum(), x, { create_graph = true })
        fails("unsupported", "no second-order gradients", function() (x * 2):sum():backward { create_graph = true } end)
        fails("value", { "no argument 'create'", "create_graph" }, yoke.grad, (x * 2):sum(), x, { create = true })
    end)
end)

local Function = yoke.autograd.Function

local Exp = Function {
    name = "Exp",
    forward = function(ctx, x)
        local y = yoke.exp(x)
        ctx:save_for_backward(y, nil)
        return y
    end,
    backward = function(ctx, g)
        assert(ctx.saved_tensors.n == 2 and ctx.saved_tensors[2] == nil)
        return g * ctx.saved_tensors[1]
    end,
}

describe("autograd.Function", function()
    it("has its own backward", function()
        local x = leaf(0, 1)
        local y = Exp(x)
        assert.is_true(y.requires_grad)
        assert.equal("Exp", yoke.saved_tensors(y)[1].op)
        local loss = (y * 2):sum()
        loss:backward()
        assert.equal(shown((yoke.exp(x:detach()) * 2)), shown(x.grad))
        fails("state", "freed by an earlier backward", function() loss:backward() end)
        assert.is_false(yoke.no_grad(Exp.apply, x).requires_grad)
    end)

    it("takes several arguments and gives several results", function()
        local seen
        local Scale = Function {
            forward = function(ctx, x, factor, y)
                ctx.factor, seen = factor, ctx.needs_input_grad
                local _, places = x:sort(0)
                ctx:mark_non_differentiable(y)
                return x * factor, "a text", y, places
            end,
            backward = function(ctx, gx, gy, places)
                assert(shown(gy) == "0.0" and places)
                return gx * ctx.factor, nil, nil
            end,
        }
        local x, y = leaf(1), leaf(2)
        local a, text, b, places = Scale.apply(x, 3, y)
        assert.same({ true, false, true }, seen)
        assert.equal("a text", text)
        assert.is_false(b.requires_grad)
        assert.equal("int64", places.dtype)
        a:sum():backward()
        assert.equal("3.0 none", shown(x.grad) .. " " .. shown(y.grad))
    end)

    it("may change an input in place", function()
        local Double = Function {
            forward = function(ctx, x) x:mul_(2) ctx:mark_dirty(x) return x end,
            backward = function(_, g) return g * 2 end,
        }
        local x = leaf(1, 2)
        local y = x * 1
        local z = Double(y)
        assert.equal(y, z)
        z:sum():backward()
        assert.equal("2.0 2.0", shown(x.grad))
        fails("state", "is a leaf that requires grad", Double.apply, leaf(1))
    end)

    it("takes setup_context, and nil for missing gradients on demand", function()
        local Square = Function {
            forward = function(x) return x * x, x * 1 end,
            setup_context = function(ctx, inputs, outputs)
                ctx:save_for_backward(inputs[1])
                ctx:set_materialize_grads(false)
                assert(outputs.n == 2)
            end,
            backward = function(ctx, g, none)
                assert(none == nil)
                return g * 2 * ctx.saved_tensors[1]
            end,
        }
        local x = leaf(3)
        Square.apply(x):sum():backward()
        assert.equal("6.0", shown(x.grad))
    end)

    it("raises what its backward raises, and refuses wrong gradients", function()
        local function of(backward)
            return Function { name = "Wrong", forward = function(_, x) return x * 1 end, backward = backward }
        end
        local x, mine = leaf(1, 2), { of = "mine" }
        local _, raised = pcall(function() of(function() error(mine) end)(x):sum():backward() end)
        assert.equal(mine, raised)
        local cases = {
            { function() end, "value", "Wrong returned 0 gradients for 1 arguments" },
            { function(_, g) return g, g end, "value", "Wrong returned 2 gradients" },
            { function() return yoke.ones(3) end, "value", "backward of Wrong returned [3] float32" },
            { function() return 3 end, "type", "a tensor or nil" },
        }
        for _, case in ipairs(cases) do
            fails(case[2], case[3], function() of(case[1])(x):sum():backward() end)
        end
        assert.is_nil(x.grad)
        fails("type", { "Function", "'backward'" }, Function, { forward = print })
        fails("type", "save_for_backward", of(print).apply and function()
            Function { forward = function(ctx) ctx:save_for_backward(3) end, backward = print }.apply(x)
        end)
    end)

    it("is recomputed in a checkpoint scope", function()
        local x = leaf(0.5, 1)
        local y
        yoke.checkpoint(function() y = Exp(x * 2) end)
        assert.is_true(yoke.saved_tensors(y)[1].recomputed)
        y:sum():backward()
        assert.equal(shown(yoke.exp(x:detach() * 2) * 2), shown(x.grad))
    end)
end)

describe("detect_anomaly", function()
    it("names the op and the line of the first NaN", function()
        local x, loss = leaf(1, 2), nil
        local line
        yoke.autograd.detect_anomaly(function()
            line = debug.getinfo(1, "l").currentline + 1
            loss = yoke.sqrt(x * 0):sum()
            fails("state", { "backward of mul returned NaN for argument 0 ('x')", "hooks_spec.lua:" .. line }, function() loss:backward() end)
        end)
        yoke.sqrt(x * 0):sum():backward()
        do
            local _ <close> = yoke.autograd.detect_anomaly { check_nan = false }
            yoke.sqrt(x * 0):sum():backward()
        end
        fails("type", "check_nan", yoke.autograd.detect_anomaly, { check_nan = 3 })
    end)

    it("has words of PyTorch's beside it", function()
        for _, word in ipairs { "high", "medium", "highest" } do
            yoke.set_float32_matmul_precision(word)
            assert.equal(word, yoke.get_float32_matmul_precision())
            assert.equal(word ~= "highest", yoke.backends.allow_tf32)
        end
        fails("value", "'precision' is 'low'", yoke.set_float32_matmul_precision, "low")

        assert.is_false(yoke.inference_mode(yoke.is_grad_enabled))
        assert.equal(yoke.autograd.no_grad, yoke.no_grad)
    end)
end)
