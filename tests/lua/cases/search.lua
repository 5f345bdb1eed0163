-- A call of each op of core/ops/search with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

return {
    searchsorted = { function() return yoke.searchsorted(t { 1, 3, 3 }, t { 3, 9, 0 }, { right = true }) end, { 3, 3, 0 } },
    bucketize = { function() return yoke.bucketize(t { 0, 2, 4 }, t { 1, 3 }) end, { 0, 1, 2 } },
    unique = { function() return yoke.unique(t { 3, 1, 3 }) end, { 1, 3 } },
    bincount = { function() return yoke.bincount(t { 0, 2, 2 }, nil, 4) end, { 1, 0, 2, 0 } },
    histc = { function() return yoke.histc(t { 0., 0.5, 2. }, 2, 0, 2) end, { 2, 1 } },
}
