-- A call of each op of core/ops/pool with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

local x = t { { { 1., 2., 3. }, { 4., 9., 6. }, { 7., 8., 5. } } } -- [1, 3, 3]
return {
    max_pool2d = { function() return yoke.max_pool2d(x, 2, { stride = 1 }) end, { { { 9, 9 }, { 9, 9 } } } },
    avg_pool2d = { function() return yoke.avg_pool2d(x, { 3, 1 }) end, { { { 4, 19 / 3, 14 / 3 } } } },
    adaptive_avg_pool2d = { function() return yoke.adaptive_avg_pool2d(x, { 1, 3 }) end, { { { 4, 19 / 3, 14 / 3 } } } },
}
