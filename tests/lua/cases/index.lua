-- A call of each op that writes by an index or a mask, and of grids and lists of places, with the expected result.
local yoke = require "yoke"
local assert = require "luassert"
local t = yoke.tensor

local function lists(...)
    local wanted = { ... }
    return function(parts)
        assert.equal(#wanted, #parts)
        for i, part in ipairs(parts) do assert.same(wanted[i], part:tolist()) end
    end
end

return {
    tensor_split = { function() return yoke.tensor_split(t { 1, 2, 3 }, 2) end, lists({ 1, 2 }, { 3 }) },
    meshgrid = { function() return yoke.meshgrid({ t { 1, 2 }, t { 3 } }) end, lists({ { 1 }, { 2 } }, { { 3 }, { 3 } }) },
    nonzero_tuple = { function() return yoke.nonzero_tuple(t { { 0, 3 }, { 4, 0 } }) end, lists({ 0, 1 }, { 1, 0 }) },
    scatter = { function() return yoke.scatter(t { 1, 1, 1 }, 0, t { 2, 0 }, t { 5, 6 }) end, { 6, 1, 5 } },
    scatter_ = { function() return t({ 1, 2, 3 }):scatter_(0, t { 2, 2 }, 2, { reduce = "multiply" }) end, { 1, 2, 12 } },
    take_along_dim = { function() return yoke.take_along_dim(t { { 1, 2 }, { 3, 4 } }, t { { 1 }, { 0 } }, 1) end, { { 2 }, { 3 } } },
    index_put = { function() return yoke.index_put(t { 1, 2, 3 }, { t { 0, -1 } }, t { 8, 9 }) end, { 8, 2, 9 } },
    index_put_ = { function() return t({ 1, 2, 3 }):index_put_({ t { true, false, true } }, t { 8 }, true) end, { 9, 2, 11 } },
    index_add = { function() return yoke.index_add(t { 1, 2 }, 0, t { 1, 1 }, t { 3, 4 }, { alpha = 2 }) end, { 1, 16 } },
    index_add_ = { function() return t({ 1, 2 }):index_add_(0, t { 1, 1 }, t { 3, 4 }) end, { 1, 9 } },
    index_copy = { function() return yoke.index_copy(t { 1, 2 }, 0, t { 1 }, t { 3 }) end, { 1, 3 } },
    index_copy_ = { function() return t({ 1, 2 }):index_copy_(0, t { 0 }, t { 3 }) end, { 3, 2 } },
    index_fill = { function() return yoke.index_fill(t { { 1, 2 }, { 3, 4 } }, 1, t { 1 }, 0) end, { { 1, 0 }, { 3, 0 } } },
    index_fill_ = { function() return t({ 1, 2, 3 }):index_fill_(0, t { 0, 2 }, t(7)) end, { 7, 2, 7 } },
    masked_scatter = { function() return yoke.masked_scatter(t { 1, 2, 3 }, t { true, false, true }, t { 8, 9 }) end, { 8, 2, 9 } },
    masked_scatter_ = { function() return t({ 1, 2, 3 }):masked_scatter_(t { false, false, true }, t { 8, 9 }) end, { 1, 2, 8 } },
}
