-- A call of each op of core/ops/matmul with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

return {
    scaled_mm = { function() return yoke.scaled_mm(t { { 1., 2. } }, t { { 3. }, { 4. } }, t { 2. }, t { 3. }) end, { { 66 } } },
    mm = { function() return yoke.mm(t { { 1., 2. } }, t { { 3. }, { 4. } }) end, { { 11 } } },
    bmm = { function() return yoke.bmm(t { { { 1., 2. } } }, t { { { 3. }, { 4. } } }) end, { { { 11 } } } },
    mv = { function() return yoke.mv(t { { 1., 2. }, { 3., 4. } }, t { 5., 6. }) end, { 17, 39 } },
    dot = { function() return yoke.dot(t { 1., 2. }, t { 3., 4. }) end, 11 },
    addmm = { function() return yoke.addmm(t { 10. }, t { { 1., 2. } }, t { { 3. }, { 4. } }, { beta = 2, alpha = 3 }) end, { { 53 } } },
    baddbmm = { function() return yoke.baddbmm(t { 10. }, t { { { 1., 2. } } }, t { { { 3. }, { 4. } } }, { beta = 2 }) end, { { { 31 } } } },
    trace = { function() return yoke.trace(t { { 1, 2 }, { 3, 4 } }) end, 5 },
    cdist = { function() return yoke.cdist(t { { 0., 0. } }, t { { 3., 4. }, { 1., 0. } }) end, { { 5, 1 } } },
    normalize = { function() return yoke.normalize(t { { 3., 4. } }) end, { { 0.6, 0.8 } } },
    cosine_similarity = { function() return yoke.cosine_similarity(t { { 3., 4. } }, t { { 4., 3. } }) end, { 0.96 } },
    outer = { function() return yoke.outer(t { 1., 2. }, t { 3., 4., 5. }) end, { { 3, 4, 5 }, { 6, 8, 10 } } },
    einsum = { function() return yoke.einsum("ij,kj->ik", { t { { 1., 2. } }, t { { 3., 4. }, { 5., 6. } } }) end, { { 11, 17 } } },
    scaled_dot_product_attention = {
        function()
            local value = t { { 1., 2. }, { math.huge, 0 / 0 } }
            return yoke.scaled_dot_product_attention(t { { 1., 0. } }, t { { 1., 0. }, { 7., 7. } }, value, { is_causal = true })
        end, { { 1, 2 } },
    },
}
