-- A call of each loss of core/ops/loss.cpp and core/ops/class_loss.cpp with the expected result; cross_entropy stands
-- in ops_spec.lua.
local yoke = require "yoke"
local t = yoke.tensor

local x, target = t { 1., -3. }, t { 2., 1. }
local none = { reduction = "none" }
return {
    nll_loss = { function() return yoke.nll_loss(t { { -1., -2. }, { -3., -4. } }, t { 1, 0 }, none) end, { 2, 3 } },
    mse_loss = { function() return yoke.mse_loss(x, target, none) end, { 1, 16 } },
    l1_loss = { function() return yoke.l1_loss(x, target, none) end, { 1, 4 } },
    smooth_l1_loss = { function() return yoke.smooth_l1_loss(x, target, { reduction = "none", beta = 2 }) end, { 0.25, 3 } },
    binary_cross_entropy_with_logits = {
        function() return yoke.binary_cross_entropy_with_logits(t { 0., 800., math.huge, -math.huge }, t { 0.5, 0., 1., 0. }, none) end,
        { math.log(2), 800, 0, 0 },
    },
    binary_cross_entropy = {
        function() return yoke.binary_cross_entropy(t { 0.5, 0. }, t { 1., 1. }, none) end, { math.log(2), 100 },
    },
    kl_div = { function() return yoke.kl_div(t { -1., 0. }, t { 1., 0. }, none) end, { 1, 0 } },
}
