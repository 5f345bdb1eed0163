-- Autocast regions: scopes of the coroutine, in three spellings.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local function product()
    local x <close> = yoke.ones({ 2, 2 })
    local y <close> = x:matmul(x)
    return y.dtype
end

describe("autocast", function()
    it("is a scope that closes, runs a function, or nests", function()
        assert.equal("float32", product())
        do
            local _ <close> = yoke.autocast { dtype = "float16" }
            assert.equal("float16", product())
            assert.is_true(yoke.is_autocast_enabled())
            assert.equal("float16", yoke.get_autocast_dtype())
            do
                local _ <close> = yoke.autocast { enabled = false }
                assert.equal("float32", product())
            end
            assert.equal("float16", product())
        end
        assert.equal("float32", product())
        assert.same({ "bfloat16", 7 }, { yoke.autocast({}, function(n) return product(), n end, 7) })
        assert.same({ "float16", 7 }, { yoke.autocast("float16", function(n) return product(), n end, 7) })
        assert.equal("bfloat16", (yoke.autocast(product)))
        assert.is_false(yoke.is_autocast_enabled())
    end)

    it("belongs to the coroutine that opened it", function()
        local other = coroutine.wrap(function()
            local _ <close> = yoke.autocast "bfloat16"
            coroutine.yield(product())
            coroutine.yield(product())
        end)
        assert.equal("bfloat16", other())
        assert.equal("float32", product())
        do
            local _ <close> = yoke.autocast "float16"
            assert.equal("bfloat16", other())
            assert.equal("float16", product())
            other()
        end
        assert.equal("float32", product())
    end)

    it("casts a weight anew that was written as bytes", function()
        local w <close> = yoke.ones({ 2, 2 }):requires_grad_()
        local x <close> = yoke.ones({ 2, 2 })
        local threes <close> = yoke.full({ 2, 2 }, 3.0)
        local _ <close> = yoke.autocast()
        local function total()
            local y <close> = x:matmul(w)
            local sum <close> = y:sum()
            return sum:item()
        end
        assert.equal(8, total())
        yoke.no_grad(function() w:copy_from_string(threes:tobytes()) end)
        assert.equal(24, total())
    end)

    it("and no_grad do not disturb each other", function()
        local w <close> = yoke.ones({ 2, 2 }):requires_grad_()
        local _ <close> = yoke.autocast()
        do
            local _ <close> = yoke.no_grad()
            local y <close> = w:matmul(w)
            assert.equal("bfloat16", y.dtype)
            assert.is_false(y.requires_grad)
        end
        local y <close> = w:matmul(w)
        assert.is_true(y.requires_grad)
    end)

    it("ends with an error in its function", function()
        assert.is_false(pcall(yoke.autocast, {}, function() error "stop" end))
        assert.equal("float32", product())
    end)

    it("keeps casts of weights until it ends", function()
        local weight <close> = yoke.ones({ 256, 256 }):requires_grad_()
        local x <close> = yoke.ones({ 1, 256 })
        collectgarbage()
        local before = yoke.memory_allocated()
        do
            local _ <close> = yoke.autocast()
            local y <close> = x:matmul(weight)
            y:close()
            collectgarbage()
            assert.is_true(yoke.memory_allocated() - before >= 256 * 256 * 2)
        end
        assert.equal(before, yoke.memory_allocated())
    end)

    it("refuses what it does not know, with what there is", function()
        fails("value", { "autocast", "'dtyp'", "cache_enabled" }, yoke.autocast, { dtyp = "float16" })
        fails("value", { "autocast", "float64" }, yoke.autocast, { dtype = "float64" })
        fails("type", { "autocast", "'enabled'" }, yoke.autocast, { enabled = 1 })
        fails("type", { "autocast", "'fn'" }, yoke.autocast, {}, 5)
        fails("unsupported", { "binary_cross_entropy", "with_logits" }, yoke.autocast, {}, function()
            return yoke.binary_cross_entropy(yoke.ones { 1 }, yoke.ones { 1 })
        end)
    end)
end)

describe("saved_tensors", function()
    it("tells what the tape keeps of an op", function()
        local x <close> = yoke.ones({ 3, 4 })
        local w <close> = yoke.ones({ 5, 4 }):requires_grad_()
        local y <close> = yoke.linear(x, w)
        local saved = yoke.saved_tensors(y)
        assert.equal(1, #saved)
        assert.same({ "x", "float32", 48 }, { saved[1].argument, saved[1].dtype, saved[1].nbytes })
        assert.same({ 3, 4 }, saved[1].shape)
        assert.same({}, yoke.saved_tensors(w))
    end)
end)
