-- Every op through Lua's call convention: by place, by name, as a method, as an operator.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails, close_to = support.leak_free(it), support.fails, support.close_to

-- A call of each op with the expected result; if the expected result is a function, the function judges.
local function t(...) return yoke.tensor(...) end
local e = math.exp(1)
local function has_shape(...)
    local shape = { ... }
    return function(x) assert.same(shape, x.shape) end
end
local function all_below(limit)
    return function(x)
        for _, value in ipairs(x:reshape({ -1 }):tolist()) do assert.is_true(value >= 0 and value < limit) end
    end
end

local cases = {
    add = { function() return yoke.add(t { 1., 2. }, 1) end, { 2, 3 } },
    sub = { function() return yoke.sub(1, t { 1., 2. }) end, { 0, -1 } },
    mul = { function() return yoke.mul(t { 1, 2 }, t { 3, 4 }) end, { 3, 8 } },
    div = { function() return yoke.div(t { 1, 2 }, 2) end, { 0.5, 1 } },
    neg = { function() return yoke.neg(t { 1, -2 }) end, { -1, 2 } },
    exp = { function() return yoke.exp(t { 0., 1. }) end, { 1, e } },
    log = { function() return yoke.log(t { 1., e }) end, { 0, 1 } },
    relu = { function() return yoke.relu(t { -1., 2. }) end, { 0, 2 } },
    tanh = { function() return yoke.tanh(t { 0., 1. }) end, { 0, (e * e - 1) / (e * e + 1) } },
    gelu = { function() return yoke.gelu(t { 0., 10. }, { approximate = "tanh" }) end, { 0, 10 } },
    cast = { function() return yoke.cast(t { 1.7, -1.7 }, yoke.int32) end, { 1, -1 } },
    clone = { function() return yoke.clone(t { 1, 2 }) end, { 1, 2 } },
    copy_ = { function() return yoke.copy_(yoke.zeros({ 2 }), t { 1, 2 }) end, { 1, 2 } },
    fill_ = { function() return yoke.fill_(yoke.zeros({ 2 }), 3) end, { 3, 3 } },
    add_ = { function() return yoke.add_(t { 1, 2 }, t { 3, 4 }) end, { 4, 6 } },
    sum = { function() return yoke.sum(t { { 1, 2 }, { 3, 4 } }, { axis = 0 }) end, { 4, 6 } },
    mean = { function() return yoke.mean(t { { 1., 2. }, { 3., 4. } }, { 0, 1 }, true) end, { { 2.5 } } },
    amax = { function() return yoke.amax(t { { 1, 5 }, { 3, 4 } }, 1) end, { 5, 4 } },
    argmax = { function() return yoke.argmax(t { { 1, 5 }, { 4, 3 } }, { axis = -1 }) end, { 1, 0 } },
    softmax = { function() return yoke.softmax(t { 0., 0. }) end, { 0.5, 0.5 } },
    log_softmax = { function() return yoke.log_softmax(t { { 0., 0. } }, 1) end, { { -math.log(2), -math.log(2) } } },
    cross_entropy = {
        function() return yoke.cross_entropy(t { { 0., 0. } }, t { 1 }, { reduction = "none" }) end, { math.log(2) },
    },
    matmul = { function() return yoke.matmul(t { { 1., 2. } }, t { { 3. }, { 4. } }) end, { { 11 } } },
    linear = { function() return yoke.linear(t { { 1., 2. } }, t { { 3., 4. } }, t { 1. }) end, { { 12 } } },
    reshape = { function() return yoke.reshape(yoke.arange(4), { 2, -1 }) end, { { 0, 1 }, { 2, 3 } } },
    view = { function() return yoke.view(yoke.arange(4), { 2, 2 }) end, { { 0, 1 }, { 2, 3 } } },
    transpose = { function() return yoke.transpose(t { { 1, 2 } }, 0, 1) end, { { 1 }, { 2 } } },
    permute = { function() return yoke.permute(t { { 1, 2 } }, { 1, 0 }) end, { { 1 }, { 2 } } },
    expand = { function() return yoke.expand(t { 1, 2 }, { 2, -1 }) end, { { 1, 2 }, { 1, 2 } } },
    squeeze = { function() return yoke.squeeze(t { { 1, 2 } }) end, { 1, 2 } },
    unsqueeze = { function() return yoke.unsqueeze(t { 1, 2 }, -1) end, { { 1 }, { 2 } } },
    slice = { function() return yoke.slice(yoke.arange(6), 0, 1, nil, 2) end, { 1, 3, 5 } },
    index_select = { function() return yoke.index_select(t { { 1, 2 }, { 3, 4 } }, 1, t { 1, 1 }) end, { { 2, 2 }, { 4, 4 } } },
    contiguous = { function() return yoke.contiguous(t { { 1, 2 } }:transpose(0, 1)) end, { { 1 }, { 2 } } },
    cat = { function() return yoke.cat({ t { 1 }, t { 2, 3 } }) end, { 1, 2, 3 } },
    one_hot = { function() return yoke.one_hot(t { 1, 0 }, { num_classes = 3 }) end, { { 0, 1, 0 }, { 1, 0, 0 } } },
    dropout = { function() return yoke.dropout(t { 1., 2. }, { training = false }) end, { 1, 2 } },
    empty = { function() return yoke.empty({ 2, 3 }) end, has_shape(2, 3) },
    zeros = { function() return yoke.zeros({ 2 }, yoke.int32) end, { 0, 0 } },
    ones = { function() return yoke.ones(2, { device = "cpu" }) end, { 1, 1 } },
    full = { function() return yoke.full({ 2 }, 7) end, { 7, 7 } },
    arange = { function() return yoke.arange(1, 7, 2) end, { 1, 3, 5 } },
    linspace = { function() return yoke.linspace(0, 1, 3) end, { 0, 0.5, 1 } },
    tril_indices = { function() return yoke.tril_indices(2, 3) end, { { 0, 1, 1 }, { 0, 0, 1 } } },
    triu_indices = { function() return yoke.triu_indices(2, 3, 1) end, { { 0, 0, 1 }, { 1, 2, 2 } } },
    eye = { function() return yoke.eye(2, 3) end, { { 1, 0, 0 }, { 0, 1, 0 } } },
    rand = { function() return yoke.rand({ 100 }) end, all_below(1) },
    randn = { function() return yoke.randn({ 4, 2 }) end, has_shape(4, 2) },
    randint = { function() return yoke.randint(0, 5, { 100 }) end, all_below(5) },
    randperm = { function() return yoke.randperm(5) end, function(x)
        local list = x:tolist()
        table.sort(list)
        assert.same({ 0, 1, 2, 3, 4 }, list)
    end },
    empty_like = { function() return yoke.empty_like(t { 1, 2 }) end, has_shape(2) },
    zeros_like = { function() return yoke.zeros_like(t { 1, 2 }) end, { 0, 0 } },
    ones_like = { function() return yoke.ones_like(t { 1, 2 }, "float32") end, { 1, 1 } },
    full_like = { function() return yoke.full_like(t { 1, 2 }, 9) end, { 9, 9 } },
    rand_like = { function() return yoke.rand_like(t { 1., 2. }) end, all_below(1) },
    randn_like = { function() return yoke.randn_like(t { 1., 2. }) end, has_shape(2) },
    randint_like = { function() return yoke.randint_like(t { 1, 2 }, 0, 3) end, all_below(3) },
}
for _, family in ipairs { "pointwise", "functions", "reduce", "norm", "loss", "matmul", "conv", "pool", "random", "resize", "shape", "axes", "index", "search" } do
    for name, case in pairs(dofile("tests/lua/cases/" .. family .. ".lua")) do cases[name] = case end
end

describe("the op", function()
    for name, op in pairs(yoke.ops()) do
        it(name .. " does in Lua what it says", function()
            local case = assert(cases[name], "add a case for the op " .. name .. ": " .. op.signature)
            local result = case[1]()
            if type(case[2]) == "function" then
                case[2](result)
            else
                local got = result
                if type(result) ~= "boolean" then got = result:tolist() end
                assert.is_true(close_to(got, case[2], 1e-6), tostring(result))
            end
        end)
    end
end)

describe("arguments", function()
    it("go by place, by name after the required ones, and nil stands for the default", function()
        local x = t { { 1., 2. }, { 3., 4. } }
        for _, y in ipairs { x:sum(1, true), x:sum(1, { keepdim = true }), x:sum { axis = 1, keepdim = true },
            x:sum({ 1 }, true, nil), yoke.sum(x, { axis = { 1 }, keepdim = true }) } do
            assert.same({ { 3.0 }, { 7.0 } }, y:tolist())
        end
        assert.equal(10.0, x:sum(nil, nil, yoke.float64):item())
        assert.same(x:tolist(), x:relu({}):tolist())
    end)

    it("are refused with the call, the argument, what was given and what is taken", function()
        local x = t { 1., 2. }
        fails("value", { "sum", "'axes'", "sum(x, axis = nil" }, x.sum, x, { axes = 0 })
        fails("value", { "sum", "'axis'", "twice" }, x.sum, x, 0, { axis = 0 })
        fails("value", { "relu", "at most 1 argument but 3 were given" }, yoke.relu, x, 1, 2)
        fails("type", { "softmax", "'axis'", "string", "an integer" }, yoke.softmax, x, "0")
        fails("type", { "softmax", "'axis'", "1.5" }, yoke.softmax, x, 1.5)
        fails("type", { "sum", "'keepdim'", "number", "boolean" }, yoke.sum, x, 0, 1)
        fails("type", { "add", "'y'", "table" }, yoke.add, x, { 1, 2 })
        fails("type", { "zeros", "item 2", "'shape'", "1.5" }, yoke.zeros, { 1, 1.5 })
        fails("type", { "cat", "item 2", "'tensors'" }, yoke.cat, { x, 5 })
        fails("type", { "gelu", "'approximate'" }, yoke.gelu, x, 5)
        fails("type", { "relu", "'x'", "FILE*", "a tensor" }, yoke.relu, io.stdout)
        fails("value", { "matmul", "'y'", "missing" }, yoke.matmul, x)
        fails("value", { "zeros", "integers" }, yoke.zeros, yoke.arange(100):tolist())
    end)

    it("may be whole numbers written as floats where an integer is taken", function()
        assert.same({ 2 }, yoke.zeros({ 2.0 }).shape)
        assert.same({ 0.5, 0.5 }, yoke.softmax(t { 0., 0. }, 0.0):tolist())
    end)

    it("in a list of tensors may be more than find room on the stack", function()
        local list = {}
        for i = 1, 100 do list[i] = yoke.full({ 2 }, i) end
        local x = yoke.cat(list)
        assert.same({ 200 }, x.shape)
        assert.equal(100, x[-1]:item())
    end)
end)

describe("numbers at the ends of the range", function()
    for _, scale in ipairs { 1e-37, 1e-25, 1e25, 5e37 } do
        it(("have deviations and norms that scale with them: %g"):format(scale), function()
            local x = t { scale, 2 * scale, 4 * scale }:requires_grad_()
            local y = yoke.std(x)
            y:backward()
            assert.is_true(math.abs(y:item() / scale - 1.5275252) < 1e-5, tostring(y:item()))
            assert.is_true(close_to(x.grad:tolist(), { -0.4364358, -0.1091089, 0.5455447 }, 1e-5))
            assert.is_true(math.abs(yoke.norm(x):item() / scale - 4.5825757) < 1e-5)
            assert.equal(0.0, yoke.std(yoke.full({ 319 }, scale)):item())
        end)
    end
end)

describe("operators", function()
    it("raise to powers, of numbers on either side too", function()
        local x = t { 1., 2., 3. }
        assert.same({ 1.0, 4.0, 9.0 }, (x ^ 2):tolist())
        assert.same({ 2.0, 4.0, 8.0 }, (2 ^ x):tolist())
        assert.same({ 1.0, 4.0, 27.0 }, (x ^ x):tolist())
        fails("value", { "pow", "-1", "floating" }, function() return t { 2, 3 } ^ -1 end)
    end)

    it("are the ops, with numbers on either side", function()
        local x = t { 1., 2. }
        assert.same({ 3.0, 4.0 }, (2 + x):tolist())
        assert.same({ 1.0, 0.0 }, (2 - x):tolist())
        assert.same({ 2.0, 4.0 }, (x * 2):tolist())
        assert.same({ 2.0, 1.0 }, (2 / x):tolist())
        assert.same({ -1.0, -2.0 }, (-x):tolist())
        fails("type", "string", function() return x + "1" end)
    end)

    it("combine bits, and divide to whole numbers, as Lua's own", function()
        local x = t { 6, 5, -7 }
        assert.same({ 6 & 3, 5 & 3, -7 & 3 }, (x & 3):tolist())
        assert.same({ 6 | 8, 5 | 8, -7 | 8 }, (8 | x):tolist())
        assert.same({ 6 ~ 1, 5 ~ 1, -7 ~ 1 }, (x ~ 1):tolist())
        assert.same({ ~6, ~5, ~-7 }, (~x):tolist())
        assert.same({ 24, 20, -28 }, (x << 2):tolist())
        assert.same({ 3, 2, -4 }, (x >> 1):tolist())
        assert.same({ 6 // 4, 5 // 4, -7 // 4 }, (x // 4):tolist())
        assert.same({ 6 % 4, 5 % 4, -7 % 4 }, (x % 4):tolist())
        assert.same({ 17 // 6, 17 // 5, 17 // -7 }, (17 // x):tolist())
        assert.same({ true, false }, (t { true, true } & t { true, false }):tolist())
        fails("type", { "bitwise_and", "float32" }, function() return t { 1. } & 1 end)
        fails("value", { "floor_divide", "divisor is 0" }, function() return x // 0 end)
    end)

    it("take numbers as weak scalars", function()
        assert.equal("int32", (t({ 1 }, "int32") + 1).dtype)
        assert.equal("float32", (t({ 1 }, "int32") + 1.5).dtype)
        assert.equal("float16", (t({ 1 }, "float16") + 1.5).dtype)
    end)

    it("that compare are refused with what to do", function()
        local x = t { 1., 2. }
        fails("type", "item()", function() return x < x end)
        fails("type", "item()", function() return x >= 1 end)
        fails("type", "yoke.eq(a, b)", function() return x == x:clone() end)
    end)

    it("in place return what they changed", function()
        local x = t { 1., 2. }
        assert.equal(x, x:add_(1))
        assert.same({ 2.0, 3.0 }, x:tolist())
    end)
end)
