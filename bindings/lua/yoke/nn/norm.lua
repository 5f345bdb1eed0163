--- Normalisation layers. Weights start as ones, biases as zeros. All take {dtype =, device =} besides their other
--- options.
local core = require "yoke.core"
local base = require "yoke.nn.module"

local norm = {}
local none = base.none

local function lengths(call, shape)
    local list = type(shape) == "table" and shape or { shape }
    if #list == 0 then core.raise("value", call, "argument 'normalized_shape' is empty; it takes a length, or a list of lengths") end
    for _, length in ipairs(list) do base.positive(call, { "normalized_shape", length }) end
    return list
end

-- Registers a scale and a shift of the same shape, if requested.
local function register(self, shape, weight, bias, options)
    local where = { dtype = options.dtype, device = options.device }
    self:register_parameter("weight", weight and base.Parameter(core.ones(shape, where)) or nil)
    self:register_parameter("bias", bias and base.Parameter(core.zeros(shape, where)) or nil)
end

--- nn.LayerNorm(normalized_shape, {eps = 1e-5, elementwise_affine = true, bias = true}): normalises the last
--- axes to mean 0 and variance 1. norm(x, residual) gives x + residual, and the norm of that, in one pass over memory
--- (yoke.add_layer_norm); under autocast the norm is in the half that products take.
norm.LayerNorm = base.Module:extend("LayerNorm")

function norm.LayerNorm:init(normalized_shape, options)
    options = base.options("LayerNorm", options,
        { eps = 1e-5, elementwise_affine = true, bias = true, dtype = none, device = none })
    self.normalized_shape, self.eps = lengths("LayerNorm", normalized_shape), options.eps
    register(self, self.normalized_shape, options.elementwise_affine, options.elementwise_affine and options.bias, options)
end

local HALVES = { float16 = true, bfloat16 = true }

function norm.LayerNorm:forward(x, residual)
    if residual == nil then return core.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps) end
    local dtype, other, is_cast = tostring(x.dtype), tostring(residual.dtype), core.is_autocast_enabled()
    if is_cast and HALVES[dtype] and dtype == other then -- the sum is a half, whose norm is taken in float32
        local total = x + residual
        return total, self:forward(total)
    end
    local has_half = is_cast and dtype ~= "float64" and other ~= "float64"
    return core.add_layer_norm(x, residual, self.normalized_shape, self.weight, self.bias, self.eps,
        has_half and core.get_autocast_dtype(x.device) or nil)
end

function norm.LayerNorm:extra() return ("{%s}, eps=%g"):format(table.concat(self.normalized_shape, ", "), self.eps) end

--- nn.RMSNorm(normalized_shape, {eps =, elementwise_affine = true}): divides the last axes by their root mean
--- square; eps is the dtype's own epsilon if absent.
norm.RMSNorm = base.Module:extend("RMSNorm")

function norm.RMSNorm:init(normalized_shape, options)
    options = base.options("RMSNorm", options, { eps = none, elementwise_affine = true, dtype = none, device = none })
    self.normalized_shape, self.eps = lengths("RMSNorm", normalized_shape), options.eps
    register(self, self.normalized_shape, options.elementwise_affine, false, options)
end

function norm.RMSNorm:forward(x) return core.rms_norm(x, self.normalized_shape, self.weight, self.eps) end

function norm.RMSNorm:extra() return ("{%s}, eps=%s"):format(table.concat(self.normalized_shape, ", "), self.eps) end

--- nn.GroupNorm(num_groups, num_channels, {eps = 1e-5, affine = true}): normalises x [N, C, …] in groups of channels.
norm.GroupNorm = base.Module:extend("GroupNorm")

function norm.GroupNorm:init(num_groups, num_channels, options)
    base.positive("GroupNorm", { "num_groups", num_groups }, { "num_channels", num_channels })
    if num_channels % num_groups ~= 0 then
        core.raise("value", "GroupNorm", ("argument 'num_channels' is %d and 'num_groups' is %d; 'num_groups' must divide 'num_channels' evenly")
            :format(num_channels, num_groups))
    end
    options = base.options("GroupNorm", options, { eps = 1e-5, affine = true, dtype = none, device = none })
    self.num_groups, self.num_channels, self.eps = num_groups, num_channels, options.eps
    register(self, { num_channels }, options.affine, options.affine, options)
end

function norm.GroupNorm:forward(x) return core.group_norm(x, self.num_groups, self.weight, self.bias, self.eps) end

function norm.GroupNorm:extra() return ("%d, %d, eps=%g"):format(self.num_groups, self.num_channels, self.eps) end

--- nn.BatchNorm1d(num_features, {eps = 1e-5, momentum = 0.1, affine = true, track_running_stats = true, relu = false}),
--- of [N, C] or [N, C, L], and nn.BatchNorm2d, of [N, C, H, W]: each channel is normalised over the batch while
--- training, by running statistics otherwise. momentum = false takes the plain average over all batches so far. With
--- relu = true what comes out is the ReLU of that, or of that and a residual, norm(x, residual), in one pass over
--- memory: yoke.batch_norm_add_relu.
local BatchNorm = base.Module:extend("BatchNorm")

function BatchNorm:init(num_features, options)
    base.positive(self.class_name, { "num_features", num_features })
    options = base.options(self.class_name, options,
        { eps = 1e-5, momentum = 0.1, affine = true, track_running_stats = true, relu = false, dtype = none, device = none })
    self.num_features, self.eps, self.momentum, self.relu = num_features, options.eps, options.momentum, options.relu
    register(self, { num_features }, options.affine, options.affine, options)
    local where = { dtype = options.dtype, device = options.device }
    if options.track_running_stats then
        self:register_buffer("running_mean", core.zeros({ num_features }, where))
        self:register_buffer("running_var", core.ones({ num_features }, where))
        self:register_buffer("num_batches_tracked", core.zeros({}, { dtype = "int64", device = options.device }))
    end
end

function BatchNorm:forward(x, residual)
    if residual ~= nil and not self.relu then
        core.raise("value", self.class_name, "argument 'residual' is given, but the layer has relu = false; make the layer with relu = true, or add the residual to the layer's result")
    end
    if x.ndim ~= self.ndims[1] and x.ndim ~= self.ndims[2] then
        core.raise("value", self.class_name, ("argument 'x' has shape [%s]; it must be %s"):format(table.concat(x.shape, ", "),
            self.layout))
    end
    local momentum = self.momentum
    if self.training and self.num_batches_tracked then
        self.num_batches_tracked:add_(1)
        momentum = momentum or 1 / self.num_batches_tracked:item()
    end
    local options = { running_mean = self.running_mean, running_var = self.running_var, weight = self.weight, bias = self.bias,
        training = self.training or self.running_mean == nil, momentum = momentum or 0.0, eps = self.eps }
    if not self.relu then return core.batch_norm(x, options) end
    options.residual = residual
    return core.batch_norm_add_relu(x, options)
end

function BatchNorm:extra()
    return ("%d, eps=%g, momentum=%s%s"):format(self.num_features, self.eps, self.momentum, self.relu and ", relu=true" or "")
end

norm.BatchNorm1d = BatchNorm:extend("BatchNorm1d")
norm.BatchNorm1d.ndims, norm.BatchNorm1d.layout = { 2, 3 }, "[N, C] or [N, C, L]"
norm.BatchNorm2d = BatchNorm:extend("BatchNorm2d")
norm.BatchNorm2d.ndims, norm.BatchNorm2d.layout = { 4 }, "[N, C, H, W]"

return norm
