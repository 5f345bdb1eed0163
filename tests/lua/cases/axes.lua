-- A call of each op of core/ops/axes, and of repeats, with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

return {
    flatten = { function() return yoke.flatten(t { { { 1 }, { 2 } }, { { 3 }, { 4 } } }, { start_axis = 1 }) end, { { 1, 2 }, { 3, 4 } } },
    unflatten = { function() return yoke.unflatten(t { 1, 2, 3, 4 }, 0, { 2, -1 }) end, { { 1, 2 }, { 3, 4 } } },
    ravel = { function() return t({ { 1, 2 }, { 3, 4 } }):ravel() end, { 1, 2, 3, 4 } },
    movedim = { function() return yoke.movedim(t { { 1, 2, 3 } }, 0, 1) end, { { 1 }, { 2 }, { 3 } } },
    swapaxes = { function() return t({ { 1, 2 } }):swapaxes(0, 1) end, { { 1 }, { 2 } } },
    narrow = { function() return yoke.narrow(t { 1, 2, 3, 4 }, 0, 1, 2) end, { 2, 3 } },
    diagonal = { function() return yoke.diagonal(t { { 1, 2 }, { 3, 4 } }, { offset = 1 }) end, { 2 } },
    diag = { function() return yoke.diag(t { 1, 2 }) end, { { 1, 0 }, { 0, 2 } } },
    unfold = { function() return t({ 1, 2, 3, 4 }):unfold(0, 2, 2) end, { { 1, 2 }, { 3, 4 } } },
    repeat_interleave = { function() return yoke.repeat_interleave(t { 1, 2 }, t { 2, 1 }) end, { 1, 1, 2 } },
}
