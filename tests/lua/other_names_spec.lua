-- PyTorch's names of arguments: calls take them beside their own names.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local x = yoke.arange(6):reshape(2, 3):float()

local function equal(ours, theirs)
    for _ = 1, 2 do assert.same(ours():tolist(), theirs():tolist()) end -- the second call knows the name
end

describe("a name of PyTorch", function()
    it("means our argument", function()
        equal(function() return x:sum(1) end, function() return x:sum { dim = 1 } end)
        equal(function() return x:sum(1, true) end, function() return x:sum(1, { keepdims = true }) end)
        equal(function() return x:roll(1, 0) end, function() return x:roll(1, { dims = 0 }) end)
        equal(function() return yoke.arange(1, 4) end, function() return yoke.arange(1, { ["end"] = 4 }) end)
        equal(function() return x:var(1, { correction = 0 }) end, function() return x:var { dim = 1, unbiased = false } end)
        equal(function() return x:var() end, function() return x:var { unbiased = true } end)
        equal(function() return x:softmax(0) end, function() return yoke.nn.Softmax { dim = 0 }(x) end)
        equal(function() return yoke.cat({ x, x }, 1) end, function() return yoke.cat({ x, x }, { dim = 1 }) end)
        assert.is_truthy(yoke.Event { enable_timing = true })
    end)

    it("beside ours is refused", function()
        local told = "arguments 'axis' and 'dim' are the same argument; give one of the two"
        fails("value", told, x.sum, x, { axis = 0, dim = 0 })
        fails("value", told, x.sum, x, 0, { dim = 0 })
        fails("value", "arguments 'correction' and 'unbiased'", x.var, x, { correction = 0, unbiased = false })
        fails("value", "options 'axis' and 'dim' are the same option", yoke.nn.Softmax, { axis = 0, dim = 0 })
        fails("value", "options 'axis' and 'dim' are the same option", yoke.nn.Softmax, 0, { dim = 0 })
        fails("value", "arguments 'timing' and 'enable_timing'", yoke.Event, { timing = true, enable_timing = true })
    end)

    it("for a flag takes a boolean", function()
        fails("type", "'unbiased' is a number; it takes a boolean", x.var, x, { unbiased = 1 })
    end)

    it("is refused where the call has no such argument", function()
        fails("value", "there is no argument 'unbiased'", x.sum, x, { unbiased = true })
        fails("value", "there is no argument 'dim'", x.gelu, x, { dim = 0 })
    end)
end)
