-- A call of each op of core/ops/norm with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

local pair = t { { 1., 3. }, { 5., 9. } } -- rows and columns with known moments
return {
    layer_norm = { function() return yoke.layer_norm(pair, { 2 }, t { 2., 2. }, t { 1., 1. }, { eps = 0 }) end,
        { { -1, 3 }, { -1, 3 } } },
    rms_norm = { function() return yoke.rms_norm(t { { 3., 3. }, { 2., -2. } }, { 2 }, { eps = 0 }) end, { { 1, 1 }, { 1, -1 } } },
    group_norm = { function() return yoke.group_norm(pair, 1, { eps = 0 }) end, { { -1, 1 }, { -1, 1 } } },
    batch_norm = { function() return yoke.batch_norm(pair, { training = true, eps = 0 }) end, { { -1, -1 }, { 1, 1 } } },
    batch_norm_add_relu = { function()
        return yoke.batch_norm_add_relu(pair, t { { 1., -1. }, { -3., 2. } }, { training = true, eps = 0 })
    end, { { 0, 0 }, { 0, 3 } } },
    add_layer_norm = { function()
        local sum, normal = yoke.add_layer_norm(pair, t { { 1., 3. }, { 0., 0. } }, { 2 }, { eps = 0, dtype = yoke.float32 })
        return yoke.cat { sum, normal }
    end, { { 2, 6 }, { 5, 9 }, { -1, 1 }, { -1, 1 } } },
    embedding = { function() return yoke.embedding(t { 1, 0, 1 }, pair) end, { { 5, 9 }, { 1, 3 }, { 5, 9 } } },
}
