-- A call of each op of core/ops/reduce and core/ops/sort with the expected result.
local yoke = require "yoke"
local t = yoke.tensor

return {
    amin = { function() return yoke.amin(t { { 1, 5 }, { 3, 4 } }, 1) end, { 1, 3 } },
    argmin = { function() return yoke.argmin(t { { 1, 5 }, { 4, 3 } }, { axis = -1 }) end, { 0, 1 } },
    all = { function() return yoke.all(t { { 1, 0 }, { 3, 4 } }, 1) end, { false, true } },
    any = { function() return yoke.any(t { { 0, 0 }, { 0, 4 } }, 1) end, { false, true } },
    prod = { function() return yoke.prod(t { { 1., 2. }, { 3., 4. } }, { axis = 0 }) end, { 3, 8 } },
    var = { function() return yoke.var(t { 1., 3., 5. }, { correction = 0 }) end, 8 / 3 },
    std = { function() return yoke.std(t { 1., 3., 5. }) end, 2 },
    norm = { function() return yoke.norm(t { { 3., 4. }, { -6., 8. } }, 2, 1) end, { 5, 10 } },
    logsumexp = { function() return yoke.logsumexp(t { 0., 0. }) end, math.log(2) },
    cumsum = { function() return yoke.cumsum(t { 1, 2, 3 }, 0) end, { 1, 3, 6 } },
    sort = { function() return (yoke.sort(t { 2, 1, 3 }, { descending = true })) end, { 3, 2, 1 } },
    argsort = { function() return yoke.argsort(t { 2, 1, 3 }) end, { 1, 0, 2 } },
    cumprod = { function() return yoke.cumprod(t { 1, 2, 3 }, 0) end, { 1, 2, 6 } },
    max = { function() return (yoke.max(t { { 1, 5 }, { 3, 4 } }, 1)) end, { 5, 4 } },
    min = { function() return select(2, yoke.min(t { { 1, 5 }, { 4, 3 } }, 1)) end, { 0, 1 } },
    aminmax = { function() return select(2, yoke.aminmax(t { { 1, 5 }, { 3, 4 } }, { axis = 0 })) end, { 3, 5 } },
    var_mean = { function() return (yoke.var_mean(t { 1., 3., 5. }, { correction = 0 })) end, 8 / 3 },
    std_mean = { function() return select(2, yoke.std_mean(t { 1., 3., 5. })) end, 3 },
    count_nonzero = { function() return yoke.count_nonzero(t { { 1, 0 }, { 3, 4 } }, 0) end, { 2, 1 } },
    quantile = { function() return yoke.quantile(t { 1., 2., 4. }, t { 0., 0.75 }) end, { 1, 3 } },
    kthvalue = { function() return (yoke.kthvalue(t { 3, 1, 2 }, 2)) end, 2 },
    median = { function() return select(2, yoke.median(t { 3, 1, 2, 5 }, 0)) end, 2 },
    mode = { function() return (yoke.mode(t { 3, 1, 3, 2 })) end, 3 },
    topk = { function() return select(2, yoke.topk(t { 2, 1, 3 }, 2)) end, { 2, 0 } },
}
