-- Text of tensors. The expected texts of numbers are NumPy's own for the same arrays.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it = support.leak_free(it)

local function text(data, dtype) return tostring(yoke.tensor(data, dtype)) end

describe("tostring", function()
    it("shows nested brackets with dtype and device", function()
        assert.equal([=[
tensor([[1. , 2. ],
        [3. , 4.5]], dtype=float32, device=cpu)]=], text { { 1, 2 }, { 3, 4.5 } })
        assert.equal([=[
tensor([[[1, 2]],

        [[3, 4]]], dtype=int64, device=cpu)]=], text { { { 1, 2 } }, { { 3, 4 } } })
        assert.equal("tensor(3, dtype=int64, device=cpu)", text(3))
        assert.equal("tensor([ true, false], dtype=bool, device=cpu)", text { true, false })
        assert.equal("tensor([], shape=(0, 3), dtype=float32, device=cpu)", tostring(yoke.zeros({ 0, 3 })))
    end)

    it("shows the shortest digits that tell values of a dtype apart", function()
        assert.equal("tensor([0.1       , 0.33333334], dtype=float32, device=cpu)", text { 0.1, 1 / 3 })
        assert.equal("tensor([0.1       , 0.33333333], dtype=float64, device=cpu)", text({ 0.1, 1 / 3 }, "float64"))
        assert.equal("tensor([1.e+10, 1.e+00, 1.e-05], dtype=float32, device=cpu)", text { 1e10, 1, 1e-5 })
        assert.equal("tensor([-1.5,  inf, -inf,  nan], dtype=float32, device=cpu)",
            text { -1.5, math.huge, -math.huge, 0 / 0 })
        assert.equal("tensor([1.  , 0.25], dtype=float16, device=cpu)", text({ 1, 0.25 }, "float16"))
    end)

    it("breaks long rows and shows large tensors by their edges", function()
        assert.equal([=[
tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16,
        17, 18, 19, 20, 21, 22, 23, 24], dtype=int64, device=cpu)]=], tostring(yoke.arange(25)))
        assert.equal("tensor([   0,    1,    2, ..., 1998, 1999, 2000], dtype=int64, device=cpu)",
            tostring(yoke.arange(2001)))
        local lines = select(2, tostring(yoke.zeros({ 100, 100 })):gsub("\n", ""))
        assert.equal(6, lines)
    end)

    it("shows requires_grad, and closed tensors as such", function()
        local x = yoke.tensor({ 1. }, { requires_grad = true })
        assert.equal("tensor([1.], dtype=float32, device=cpu, requires_grad=true)", tostring(x))
        x:close()
        assert.equal("tensor(closed)", tostring(x))
    end)
end)
