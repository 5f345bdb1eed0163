-- A call of each op of core/ops/resize with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

return {
    interpolate = {
        function() return yoke.interpolate(t { { { { 1., 3. } } } }, { 1, 4 }, { mode = "bilinear" }) end, { { { { 1, 1.5, 2.5, 3 } } } },
    },
    pixel_shuffle = { function() return yoke.pixel_shuffle(t { { { 1. } }, { { 2. } }, { { 3. } }, { { 4. } } }, 2) end, { { { 1, 2 }, { 3, 4 } } } },
    pixel_unshuffle = { function() return yoke.pixel_unshuffle(t { { { 1., 2. }, { 3., 4. } } }, 2) end, { { { 1 } }, { { 2 } }, { { 3 } }, { { 4 } } } },
}
