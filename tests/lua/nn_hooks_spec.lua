-- Hooks of modules around forward.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails
local nn = yoke.nn

local Double = nn.Module:extend "Double"
function Double:forward(x, scale) return x * (scale or 2) end

local Pair = nn.Module:extend "Pair"
function Pair:forward(x) return x, x * 10 end

local function one() return yoke.ones(1) end

describe("hooks of modules", function()
    it("run in order around forward", function()
        local net, log = Double(), {}
        local function noted(name)
            return function(module, args, ...) log[#log + 1] = { name, module.class_name, args.n, select("#", ...) } end
        end
        net:register_forward_hook(noted "after")
        net:register_forward_pre_hook(noted "before")
        net:register_forward_pre_hook(noted "first", { prepend = true })
        net:register_forward_hook(noted "after first", { prepend = true })
        assert.equal(3, net(one(), 3):item())
        assert.same({ { "first", "Double", 2, 0 }, { "before", "Double", 2, 0 }, { "after first", "Double", 2, 1 }, { "after", "Double", 2, 1 } }, log)
    end)

    it("replace arguments and results", function()
        local net = Double()
        do
            local _ <close> = net:register_forward_pre_hook(function(_, args) return args[1] + 1 end)
            assert.equal(4, net(one()):item())
        end
        do
            local _ <close> = net:register_forward_pre_hook(function(_, args) return args[1], 5 end)
            assert.equal(5, net(one()):item())
        end
        assert.equal(2, net(one()):item())
        net:register_forward_hook(function(_, _, result) return result + 1 end)
        net:register_forward_hook(function(_, _, result) return { result = result }, "more" end)
        local result, more = net(one())
        assert.equal(3, result.result:item())
        assert.equal("more", more)
    end)

    it("see all results", function()
        local net = Pair()
        net:register_forward_hook(function(_, _, x, y) return x + 1, y + 1 end)
        local x, y = net(one())
        assert.same({ 2, 11 }, { x:item(), y:item() })
    end)

    it("of inner modules run, and take part in gradients", function()
        local net, names = nn.Sequential(nn.Linear(2, 1, { bias = false })), {}
        for name, module in net:named_modules() do
            module:register_forward_hook(function(_, _, result)
                names[#names + 1] = name
                return result * 3
            end)
        end
        net(yoke.ones(1, 2)):sum():backward()
        assert.same({ "0" }, names)
        assert.same({ { 3, 3 } }, net[0].weight.grad:tolist())
    end)

    it("run no more when they are removed, from the next call on", function()
        local net, log = Double(), {}
        local last
        local first = net:register_forward_hook(function(module)
            log[#log + 1] = "first"
            last:remove()
            module:register_forward_hook(function() log[#log + 1] = "new" end)
        end)
        last = net:register_forward_hook(function() log[#log + 1] = "last" end)
        net(one())
        assert.same({ "first", "last" }, log)
        first:remove()
        first:remove()
        net(one())
        assert.same({ "first", "last", "new" }, log)
    end)

    it("raise to the caller, and see failed calls where they ask for it", function()
        local net, log = Double(), {}
        net:register_forward_hook(function() log[#log + 1] = "after" end)
        do
            local _ <close> = net:register_forward_pre_hook(function() error "of the hook" end)
            local ok, err = pcall(net, one())
            assert.is_false(ok)
            assert.is_truthy(tostring(err):find("of the hook", 1, true))
        end
        net:register_forward_hook(function(_, args, ...) log[#log + 1] = args.n + select("#", ...) end, { always_call = true })
        net:register_forward_hook(function() error "of a hook" end, { always_call = true })
        fails("value", "mul", net, yoke.ones(2), yoke.ones(3))
        assert.same({ 2 }, log)
    end)

    it("are checked when they are registered", function()
        local net = Double()
        for _, name in ipairs { "register_forward_hook", "register_forward_pre_hook" } do
            fails("type", { name, "argument 'hook' is 3; it takes a function" }, net[name], net, 3)
            fails("type", { name, "option 'prepend' is 1; it takes a boolean" }, net[name], net, print, { prepend = 1 })
            fails("value", { name, "unknown option 'frist'" }, net[name], net, print, { frist = true })
            fails("type", "called without ':'", net[name], print)
        end
    end)

    it("leave too many arguments refused, states alone and other members as they are", function()
        local net = nn.Linear(2, 2)
        net:register_forward_hook(function() end)
        fails("type", { "Linear:forward", "argument 2 is", "it takes at most 1" }, net, one(), one())
        local count = 0
        for _, value in pairs(net:state_dict()) do
            count = count + 1
            value:close()
        end
        assert.equal(2, count)
        assert.equal("Linear(in_features=2, out_features=2, bias=true)", tostring(net))
    end)

    it("run once where ops are recomputed", function()
        local calls, found = 0, {}
        local net = nn.Linear(2, 2)
        net:register_forward_pre_hook(function(_, args)
            calls = calls + 1
            return args[1] * 2
        end)
        for i = 1, 2 do
            net:zero_grad()
            if i == 2 then net:checkpoint_() end
            net(yoke.ones(1, 2)):tanh():sum():backward()
            found[i] = net.weight.grad:tolist()
        end
        assert.equal(2, calls)
        assert.same(found[1], found[2])
    end)
end)

-- Collects what the nodes of the library hold. Each collection releases the next part.
local function release()
    for _ = 1, 4 do collectgarbage() end
end

describe("hooks of modules in backward", function()
    local function collected(name, test)
        it(name, function()
            test()
            release()
        end)
    end

    local Square = nn.Module:extend "Square"
    function Square:forward(x) return x * x end

    local Both = nn.Module:extend "Both"
    function Both:forward(a, n, b) return a * b, n, b * 3 end

    local function leaf(...) return yoke.tensor({ ... }, { requires_grad = true }) end

    local function shown(gradients)
        local list = {}
        for i = 1, gradients.n do list[i] = gradients[i] and gradients[i]:tolist() or "nil" end
        return list
    end

    collected("see the gradients of arguments and results", function()
        local net, seen, x = Square(), nil, leaf(1., 3.)
        net:register_full_backward_hook(function(module, inputs, outputs) seen = { rawequal(module, net), shown(inputs), shown(outputs) } end)
        local y = net(x) * yoke.tensor { 1., 10. }
        y:sum():backward()
        assert.same({ true, { { 2, 60 } }, { { 1, 10 } } }, seen)
        assert.same({ 2, 60 }, x.grad:tolist())
    end)

    collected("replace them, in order, until they are removed", function()
        local net, x = Square(), leaf(1., 3.)
        net:register_full_backward_hook(function(_, inputs) return inputs[1] + 1 end)
        local first = net:register_full_backward_hook(function(_, inputs) return inputs[1] * 100 end, { prepend = true })
        local before = net:register_full_backward_pre_hook(function(_, outputs) return outputs[1] * 10 end)
        net(x):sum():backward()
        assert.same({ 2001, 6001 }, x.grad:tolist())
        x:zero_grad()
        first:remove()
        before:remove()
        net(x):sum():backward()
        assert.same({ 3, 7 }, x.grad:tolist())
    end)

    collected("have a place for each argument and result", function()
        local net, seen, a, b = Both(), nil, leaf(2.), leaf(5.)
        net:register_full_backward_hook(function(_, inputs, outputs) seen = { shown(inputs), shown(outputs) } end)
        local first, n, second = net(a, 7, b)
        assert.equal(7, n)
        local loss = first * 10 + second
        loss:sum():backward()
        assert.same({ { { 50 }, "nil", { 23 } }, { { 10 }, "nil", { 1 } } }, seen)
        first = net(a:detach(), 7, b)
        first:sum():backward()
        assert.same({ { { 0 }, "nil", { 2 } }, { { 1 }, "nil", "nil" } }, seen)
    end)

    collected("are called where no argument needs a gradient", function()
        local net, seen = nn.Linear(1, 1), 0
        net:register_full_backward_hook(function(_, inputs, outputs) seen = inputs.n + #outputs end)
        net(yoke.ones(1, 1)):sum():backward()
        assert.equal(2, seen)
        net:register_full_backward_hook(function() return yoke.ones(1, 1) end)
        local loss = net(yoke.ones(1, 1)):sum()
        fails("value", { "Linear", "no argument of the call requires one; return nothing" }, loss.backward, loss)
        yoke.no_grad(function() assert.is_false(net(yoke.ones(1, 1)).requires_grad) end)
    end)

    collected("may not return other values", function()
        local net, x = Square(), leaf(1., 3.)
        for _, case in ipairs {
            { function(_, inputs) return inputs[1], inputs[1] end, "value", "returned 2 gradients for 1 arguments" },
            { function() return 3 end, "type", "returned 3 for argument 1; return a tensor or nil" },
            { function() return yoke.ones(1) end, "value", "returned a gradient of shape [1] for argument 1; it must have shape [2]" },
        } do
            local _ <close> = net:register_full_backward_hook(case[1])
            local loss = net(x):sum()
            fails(case[2], { "Square", case[3] }, loss.backward, loss)
        end
        assert.is_nil(x.grad)
    end)

    collected("see the same gradients where ops are recomputed", function()
        local net, found = nn.Linear(2, 2), {}
        net:register_full_backward_hook(function(_, inputs) found[#found + 1] = inputs[1]:tolist() end)
        for i = 1, 2 do
            if i == 2 then net:checkpoint_() end
            net(yoke.ones(1, 2, { requires_grad = true })):tanh():sum():backward()
        end
        assert.equal(2, #found)
        assert.same(found[1], found[2])
    end)
end)
