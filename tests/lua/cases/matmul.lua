-- A call of each op of core/ops/matmul with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

return {
    scaled_mm = { function() return yoke.scaled_mm(t { { 1., 2. } }, t { { 3. }, { 4. } }, t { 2. }, t { 3. }) end, { { 66 } } },
    outer = { function() return yoke.outer(t { 1., 2. }, t { 3., 4., 5. }) end, { { 3, 4, 5 }, { 6, 8, 10 } } },
    einsum = { function() return yoke.einsum("ij,kj->ik", { t { { 1., 2. } }, t { { 3., 4. }, { 5., 6. } } }) end, { { 11, 17 } } },
    scaled_dot_product_attention = {
        function()
            local value = t { { 1., 2. }, { math.huge, 0 / 0 } }
            return yoke.scaled_dot_product_attention(t { { 1., 0. } }, t { { 1., 0. }, { 7., 7. } }, value, { is_causal = true })
        end, { { 1, 2 } },
    },
}
