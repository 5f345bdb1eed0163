-- A call of each op of core/ops/conv with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

local square = t { { { 1., 2. }, { 3., 4. } } } -- [1, 2, 2]
return {
    conv1d = { function() return yoke.conv1d(t { { 1., 2., 4. } }, t { { { 10., 1. } } }, { padding = 1 }) end, { { 1, 12, 24, 40 } } },
    conv2d = { function() return yoke.conv2d(square, t { { { { 1., 10. } } } }, t { 5. }, { stride = { 1, 2 } }) end, { { { 26 }, { 48 } } } },
    conv_transpose2d = {
        function() return yoke.conv_transpose2d(square, t { { { { 1., 10. } } } }, { stride = { 1, 2 } }) end,
        { { { 1, 10, 2, 20 }, { 3, 30, 4, 40 } } },
    },
}
