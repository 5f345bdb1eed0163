-- A call of each op that draws into a tensor, or by probabilities and weights, with a result that no draw changes.
local yoke = require "yoke"
local t = yoke.tensor

local x = t { 0., 0. }
local function within(low, high)
    return function(result)
        for _, value in ipairs(result:tolist()) do assert(value >= low and value < high) end
    end
end
return {
    bernoulli = { function() return yoke.bernoulli(t { 0., 1. }) end, { 0, 1 } },
    multinomial = { function() return yoke.multinomial(t { 0., 2., 0. }, 3, true) end, { 1, 1, 1 } },
    normal = { function() return yoke.normal(t { 1., 2. }, 0) end, { 1, 2 } },
    normal_ = { function() return yoke.normal_(x:clone(), 3, 0) end, { 3, 3 } },
    uniform_ = { function() return x:clone():uniform_(2, 3) end, within(2, 3) },
    bernoulli_ = { function() return x:clone():bernoulli_(1) end, { 1, 1 } },
    random_ = { function() return x:clone():random_(4, 5) end, { 4, 4 } },
    exponential_ = { function() return x:clone():exponential_(1e6) end, within(0, 1) },
}
