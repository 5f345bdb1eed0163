-- A call of each op of core/ops/shape, arrange and index with the expected result.
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
    stack = { function() return yoke.stack({ t { 1, 2 }, t { 3, 4 } }, 1) end, { { 1, 3 }, { 2, 4 } } },
    split = { function() return t({ 1, 2, 3 }):split(2) end, lists({ 1, 2 }, { 3 }) },
    chunk = { function() return yoke.chunk(t { { 1, 2, 3, 4 } }, 2, { axis = 1 }) end, lists({ { 1, 2 } }, { { 3, 4 } }) },
    unbind = { function() return t({ { 1, 2 }, { 3, 4 } }):unbind() end, lists({ 1, 2 }, { 3, 4 }) },
    gather = { function() return yoke.gather(t { { 1, 2 }, { 3, 4 } }, 1, t { { 1 }, { 0 } }) end, { { 2 }, { 3 } } },
    scatter_add = { function() return yoke.scatter_add(t { 1, 1 }, 0, t { 1, 1, 0 }, t { 5, 6, 7 }) end, { 8, 12 } },
    scatter_add_ = { function() return t({ 1, 1 }):scatter_add_(0, t { 1, 1, 0 }, t { 5, 6, 7 }) end, { 8, 12 } },
    nonzero = { function() return yoke.nonzero(t { { 0, 3 }, { 4, 0 } }) end, { { 0, 1 }, { 1, 0 } } },
    masked_select = { function() return yoke.masked_select(t { 1, 2, 3 }, t { true, false, true }) end, { 1, 3 } },
    masked_fill = { function() return yoke.masked_fill(t { 1, 2, 3 }, t { true, false, true }, 9) end, { 9, 2, 9 } },
    masked_fill_ = { function() return t({ 1, 2, 3 }):masked_fill_(t { true, false, true }, 9) end, { 9, 2, 9 } },
    pad = { function() return yoke.pad(t { 1, 2, 3 }, { 2, 1 }, "reflect") end, { 3, 2, 1, 2, 3, 2 } },
    flip = { function() return yoke.flip(t { { 1, 2 }, { 3, 4 } }, { 0 }) end, { { 3, 4 }, { 1, 2 } } },
    roll = { function() return yoke.roll(t { 1, 2, 3 }, 1) end, { 3, 1, 2 } },
    tile = { function() return yoke.tile(t { 1, 2 }, { 2, 2 }) end, { { 1, 2, 1, 2 }, { 1, 2, 1, 2 } } },
    tril = { function() return yoke.tril(t { { 1, 2 }, { 3, 4 } }) end, { { 1, 0 }, { 3, 4 } } },
    triu = { function() return yoke.triu(t { { 1, 2 }, { 3, 4 } }, { diagonal = 1 }) end, { { 0, 2 }, { 0, 0 } } },
}
