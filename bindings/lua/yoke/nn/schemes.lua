--- nn.init: ways to fill a tensor before training. Each changes the tensor in place, unrecorded, and returns the
--- tensor.
---
--- Draws are yoke.rand's and yoke.randn's of the tensor's shape and dtype, in row-major order, so the same seed gives
--- the same values in Python and Lua. Arguments after the tensor have defaults: {std = 0.02}, or in order.
local core = require "yoke.core"
local options = require "yoke.options"
local read = options.read

local init = {}

local function fill(tensor, values)
    core.no_grad(function() tensor:copy_(values) end)
    return tensor
end

--- `value` everywhere.
function init.constant_(tensor, value)
    options.tensor("constant_", tensor)
    core.no_grad(function() tensor:fill_(value) end)
    return tensor
end

function init.zeros_(tensor) return init.constant_(tensor, 0.0) end

function init.ones_(tensor) return init.constant_(tensor, 1.0) end

--- Uniform in [a, b), by default [0, 1).
function init.uniform_(tensor, ...)
    local a, b = read("uniform_", { { "a", 0.0 }, { "b", 1.0 } }, ...)
    return fill(tensor, core.rand_like(tensor) * (b - a) + a)
end

--- Normal with a mean (0) and a standard deviation (1).
function init.normal_(tensor, ...)
    local mean, std = read("normal_", { { "mean", 0.0 }, { "std", 1.0 } }, ...)
    if std < 0 then core.raise("value", "normal_", ("argument 'std' is %s; it must not be negative"):format(std)) end
    return fill(tensor, core.randn_like(tensor) * std + mean)
end

local function polynomial(coefficients, at)
    local sum = core.full_like(at, coefficients[1])
    for i = 2, #coefficients do sum = sum * at + coefficients[i] end
    return sum
end

-- M. Giles, "Approximating the erfinv function", GPU Computing Gems 2: single precision.
local near = { 2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
    -0.00417768164, 0.246640727, 1.50140941 }
local far = { -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
    0.00943887047, 1.00167406, 2.83297682 }

local function erfinv(x)
    local w = -core.log((1.0 - x) * (1.0 + x))
    return x * core.where(core.lt(w, 5.0), polynomial(near, w - 2.5),
        polynomial(far, core.sqrt(core.maximum(w, 5.0)) - 3.0))
end

--- Draws from a normal distribution with a mean (0) and a standard deviation (1), cut to [a, b], by default [-2, 2].
function init.trunc_normal_(tensor, ...)
    local mean, std, a, b = read("trunc_normal_", { { "mean", 0.0 }, { "std", 1.0 }, { "a", -2.0 }, { "b", 2.0 } }, ...)
    options.tensor("trunc_normal_", tensor)
    if not (std > 0 and a < b) then
        core.raise("value", "trunc_normal_",
            ("arguments 'std', 'a' and 'b' are %s, %s and %s; 'std' must be above 0, and 'a' below 'b'"):format(std, a, b))
    end
    -- Uniform between the probabilities of both ends, then back through the normal distribution.
    local ends = core.tensor({ (a - mean) / std, (b - mean) / std }, { dtype = "float64" })
    local low, high = table.unpack(core.erf(ends / 2.0 ^ 0.5):tolist())
    local values = core.no_grad(function()
        local uniform = core.rand(tensor.shape, { device = tensor.device }) * (high - low) + low
        return core.clamp(erfinv(uniform) * (std * 2.0 ^ 0.5) + mean, a, b)
    end)
    return fill(tensor, values)
end

-- Inputs and outputs of a weight.
local function fans(tensor, call)
    local shape, field = options.tensor(call, tensor).shape, 1
    if #shape < 2 then
        core.raise("value", call, ("the tensor has shape [%s]; inputs and outputs are counted on two axes or more")
            :format(table.concat(shape, ", ")))
    end
    for i = 3, #shape do field = field * shape[i] end
    return shape[2] * field, shape[1] * field
end

--- The factor that keeps the variance through an activation; `param` is leaky_relu's slope (0.01).
function init.calculate_gain(nonlinearity, ...)
    local slope = read("calculate_gain", { { "param", 0.01 } }, ...)
    local gains = { linear = 1.0, sigmoid = 1.0, tanh = 5.0 / 3.0, relu = 2.0 ^ 0.5, selu = 0.75,
        leaky_relu = (2.0 / (1.0 + slope * slope)) ^ 0.5 }
    if not gains[nonlinearity] then
        core.raise("value", "calculate_gain", ("argument 'nonlinearity' is '%s'; it must be one of leaky_relu, linear, relu, selu, sigmoid, tanh"):format(nonlinearity))
    end
    return gains[nonlinearity]
end

--- Uniform in ±gain · √(6 / (inputs + outputs)); gain is 1 if absent.
function init.xavier_uniform_(tensor, ...)
    local gain = read("xavier_uniform_", { { "gain", 1.0 } }, ...)
    local fan_in, fan_out = fans(tensor, "xavier_uniform_")
    local bound = gain * (6.0 / math.max(fan_in + fan_out, 1)) ^ 0.5
    return init.uniform_(tensor, -bound, bound)
end

--- Normal with standard deviation gain · √(2 / (inputs + outputs)); gain is 1 if absent.
function init.xavier_normal_(tensor, ...)
    local gain = read("xavier_normal_", { { "gain", 1.0 } }, ...)
    local fan_in, fan_out = fans(tensor, "xavier_normal_")
    return init.normal_(tensor, 0.0, gain * (2.0 / math.max(fan_in + fan_out, 1)) ^ 0.5)
end

local function kaiming_std(call, tensor, ...)
    local a, mode, nonlinearity = read(call,
        { { "a", 0.0 }, { "mode", "fan_in" }, { "nonlinearity", "leaky_relu" } }, ...)
    local fan_in, fan_out = fans(tensor, call)
    if mode ~= "fan_in" and mode ~= "fan_out" then
        core.raise("value", call, ("argument 'mode' is '%s'; it must be fan_in or fan_out"):format(mode))
    end
    local fan = mode == "fan_in" and fan_in or fan_out
    return init.calculate_gain(nonlinearity, a) / math.max(fan, 1) ^ 0.5
end

--- Uniform in ±gain · √(3 / fan): kaiming_uniform_(tensor, {a = 0, mode = "fan_in", nonlinearity = "leaky_relu"}).
function init.kaiming_uniform_(tensor, ...)
    local bound = 3.0 ^ 0.5 * kaiming_std("kaiming_uniform_", tensor, ...)
    return init.uniform_(tensor, -bound, bound)
end

--- Normal with standard deviation gain / √fan; options as for kaiming_uniform_.
function init.kaiming_normal_(tensor, ...)
    return init.normal_(tensor, 0.0, kaiming_std("kaiming_normal_", tensor, ...))
end

-- Returns rows of normal draws, each orthogonalized against earlier rows, twice (Gram and Schmidt), in float64.
local function orthonormal_rows(count, width, device)
    local q = core.randn({ count, width }, { dtype = "float64", device = device })
    for i = 0, count - 1 do
        local row, before = q[i], q:slice(0, 0, i)
        for _ = 1, i > 0 and 2 or 0 do row = row - core.matmul(core.matmul(before, row), before) end
        q[i] = row / core.sqrt(core.sum(row * row))
    end
    return q
end

--- Orthonormal rows, or columns where those are fewer, times gain (1); axes from 1 on are joined.
function init.orthogonal_(tensor, ...)
    local gain = read("orthogonal_", { { "gain", 1.0 } }, ...)
    local columns, rows = fans(tensor, "orthogonal_"), tensor.shape[1]
    return core.no_grad(function()
        local q = orthonormal_rows(math.min(rows, columns), math.max(rows, columns), tensor.device)
        local values = (rows <= columns and q or q:transpose(0, 1)) * gain
        return fill(tensor, values:reshape(tensor.shape))
    end)
end

return init
