-- A pass over the op table at the sizes where kernels' buffers end. Sanitizers run this part of the sweeps, from Lua.
-- A result must be the same for dense, reversed and expanded operands. Python's sweep checks values.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it = support.leak_free(it)

local ROWS, EDGES = 3, { 511, 512, 513 } -- a buffer of 512 elements, 1 less and 1 more
local NOT_HERE = { -- ops without a tensor argument, or with a new result each time
    empty = true, zeros = true, ones = true, full = true, arange = true, linspace = true, eye = true, rand = true, randn = true,
    randint = true, randperm = true, empty_like = true, rand_like = true, randn_like = true, randint_like = true, dropout = true,
    tril_indices = true, triu_indices = true, bernoulli = true, multinomial = true, normal = true, normal_ = true, uniform_ = true,
    bernoulli_ = true, random_ = true, exponential_ = true,
}

local integers = false -- for ops that take integers alone
local function dense(n)
    local x = yoke.linspace(0.1, 0.9, ROWS * n):reshape({ ROWS, n })
    return integers and yoke.cast(x * 100, "int64") or x
end
local function backwards(n) return yoke.slice(dense(n), 1, nil, nil, -1) end
local function still(n) return yoke.expand(yoke.slice(dense(n), 1, 0, 1), { ROWS, n }) end
local LAYOUTS = { dense = dense, backwards = backwards, still = still }

local function places(n) return yoke.cast(yoke.zeros({ ROWS, n }), "int64") end
local function mask(n) return yoke.gt(dense(n), 0.5) end

-- Arguments after x, if they are not a second tensor of x's shape.
local REST = {
    add_layer_norm = function(n) return dense(n), { n } end,
    addcdiv = function(n) return dense(n), dense(n) end,
    addcdiv_ = function(n) return dense(n), dense(n) end,
    addcmul = function(n) return dense(n), dense(n) end,
    addcmul_ = function(n) return dense(n), dense(n) end,
    cast = function() return "float64" end,
    chunk = function() return 2 end,
    clamp = function() return 0.2 end,
    clamp_ = function() return 0.2 end,
    cumprod = function() return 1 end,
    cumsum = function() return 1 end,
    cross_entropy = function() return yoke.tensor { 0, 1, 2 } end,
    nll_loss = function() return yoke.tensor { 0, 1, 2 } end,
    expand = function(n) return { 2, ROWS, n } end,
    fill_ = function() return 2 end,
    flip = function() return { 0, 1 } end,
    full_like = function() return 2 end,
    gather = function(n) return 1, places(n) end,
    group_norm = function() return 1 end,
    index_select = function(n) return 1, yoke.tensor { n - 1, 0, n // 2 } end,
    kthvalue = function(n) return n // 2, 1 end,
    layer_norm = function(n) return { n } end,
    lerp = function(n) return dense(n), 0.3 end,
    lerp_ = function(n) return dense(n), 0.3 end,
    rms_norm = function(n) return { n } end,
    linear = function(n) return dense(n) end,
    matmul = function(n) return yoke.transpose(dense(n), 0, 1) end,
    mm = function(n) return yoke.transpose(dense(n), 0, 1) end,
    mv = function(n) return dense(n)[1] end,
    max = function() return 1 end,
    median = function() return 1 end,
    min = function() return 1 end,
    quantile = function() return 0.3, 1 end,
    masked_fill = function(n) return mask(n), 1 end,
    masked_fill_ = function(n) return mask(n), 1 end,
    masked_select = function(n) return mask(n) end,
    pad = function() return { 1, 2 } end,
    permute = function() return { 1, 0 } end,
    reshape = function(n) return { n, ROWS } end,
    roll = function() return { 5 } end,
    scaled_dot_product_attention = function(n) return dense(n), dense(n) end,
    scaled_mm = function(n) return yoke.transpose(dense(n), 0, 1), yoke.ones({ 1 }), yoke.ones({ 1 }) end,
    scatter_add = function(n) return 1, places(n), dense(n) end,
    scatter_add_ = function(n) return 1, places(n), dense(n) end,
    slice = function(n) return 1, 1, n - 1, 2 end,
    split = function(n) return n - 1, 1 end,
    tile = function() return { 2, 1 } end,
    topk = function() return 5 end,
    transpose = function() return 0, 1 end,
    unsqueeze = function() return 0 end,
    view = function(n) return { ROWS, n, 1 } end,
    bucketize = function(n) return dense(n)[1] end,
    movedim = function() return 0, 1 end,
    narrow = function(n) return 1, 1, n - 2 end,
    repeat_interleave = function() return 2, 1 end,
    searchsorted = function(n) return dense(n) end,
    swapaxes = function() return 0, 1 end,
    take_along_dim = function(n) return places(n), 1 end,
    tensor_split = function() return 2, 1 end,
    unflatten = function(n) return 1, { n, 1 } end,
    unfold = function() return 1, 3, 2 end,
}

-- Ops that write by an index or a mask, also in place.
for name, rest in pairs {
    index_add = function(n) return 0, yoke.tensor { 2, 0 }, yoke.narrow(dense(n), 0, 1, 2) end,
    index_copy = function(n) return 0, yoke.tensor { 2, 0 }, yoke.narrow(dense(n), 0, 1, 2) end,
    index_fill = function(n) return 1, yoke.tensor { n - 1, 0 }, 2 end,
    index_put = function(n) return { yoke.tensor { 2, 0 } }, yoke.narrow(dense(n), 0, 1, 2) end,
    masked_scatter = function(n) return mask(n), dense(n) end,
    scatter = function(n) return 1, places(n), dense(n) end,
} do
    REST[name], REST[name .. "_"] = rest, rest
end

local function call(name, x, n)
    local op = yoke[name]
    if name == "cat" or name == "stack" then return op({ x, x }) end
    if name == "einsum" then return op("ij,kj->ik", { x, x }) end
    if name == "meshgrid" then return op({ x[0], x[1] }) end
    if name == "bincount" then return op(yoke.argmax(x, 1)) end
    if name == "one_hot" then return op(yoke.argmax(x, 1), { num_classes = n }) end
    if name == "embedding" then return op(yoke.tensor { 0, 2, 1 }, x) end
    if name == "where" then return op(mask(n), x, x) end
    if name == "conv1d" then return op(x, yoke.ones({ 2, ROWS, 3 })) end
    if name == "max_pool2d" or name == "avg_pool2d" then return op(yoke.unsqueeze(x, 0), 1) end
    if name == "adaptive_avg_pool2d" then return op(yoke.unsqueeze(x, 0), { ROWS, n }) end
    if name == "conv2d" or name == "conv_transpose2d" then return op(yoke.unsqueeze(x, 0), yoke.ones({ 1, 1, 2, 3 })) end
    if name == "outer" or name == "dot" then return op(x[0], x[1]) end
    if name == "addmm" then return op(yoke.ones({ ROWS, 1 }), x, yoke.transpose(dense(n), 0, 1)) end
    if name == "bmm" or name == "baddbmm" then
        local a, b = yoke.unsqueeze(x, 0), yoke.unsqueeze(yoke.transpose(dense(n), 0, 1), 0)
        return name == "bmm" and op(a, b) or op(yoke.ones({ ROWS }), a, b)
    end
    if name == "interpolate" then return op(yoke.unsqueeze(x, 0), n + 1, { mode = "linear" }) end
    if name:find "^pixel_" then return op(yoke.unsqueeze(x, 0), 1) end
    if name == "view" then x = yoke.clone(x) end -- view needs strides of a dense tensor
    if REST[name] then return op(x, REST[name](n)) end
    local signature = yoke.ops()[name].signature
    if signature:find "%(%w+: %w+, %w+: operand" or signature:find "%(%w+: %w+, %w+: tensor[,)]" then return op(x, dense(n)) end
    if name == "batch_norm" or name == "batch_norm_add_relu" then return op(x, { training = true }) end
    return op(x)
end

local function first_of(result)
    if type(result) == "table" then return result[1] end
    if type(result) == "boolean" then return yoke.tensor(result) end
    return result
end

local function most(x) return x.numel == 0 and 0 or yoke.amax(yoke.abs(yoke.cast(x, "float64"))):item() end

-- Allows for the order of additions: sums of hundreds of products depend on the order.
local function is_near(got, want)
    return most(yoke.cast(got, "float64") - yoke.cast(want, "float64")) <= math.max(1e-3, 1e-5 * most(want))
end

describe("an axis that ends where buffers do", function()
    for name in pairs(yoke.ops()) do
        if not NOT_HERE[name] then
            it("may lie anyhow before the op " .. name, function()
                integers = name:find "^bitwise_" ~= nil
                for _, n in ipairs(EDGES) do
                    for layout, make in pairs(LAYOUTS) do
                        local changes = name:sub(-1) == "_"
                        if not (changes and layout == "still") then
                            local got = first_of(call(name, make(n), n))
                            local want = first_of(call(name, yoke.clone(make(n)), n))
                            assert.same(want.shape, got.shape)
                            assert.is_true(is_near(got, want), name .. " " .. layout .. " " .. n)
                        end
                    end
                end
            end)
        end
    end
end)
