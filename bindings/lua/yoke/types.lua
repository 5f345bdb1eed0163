--- PyTorch's words for new tensors and types: x:new_zeros(2), x:type_as(y), yoke.as_tensor(list), yoke.LongTensor {1,
--- 2}.
local core = require "yoke.core"
local options = require "yoke.options"

local methods = core.tensor_methods
local types, words = {}, {}

-- ---- Names of dtypes ------------------------------------------------------------------------------------------------

local short = { double = "float64", float = "float32", half = "float16", int = "int32", long = "int64" }
for name, dtype in pairs(short) do types[name] = dtype end

local classes = { FloatTensor = "float32", DoubleTensor = "float64", HalfTensor = "float16", BFloat16Tensor = "bfloat16", LongTensor = "int64",
    IntTensor = "int32", CharTensor = "int8", ByteTensor = "uint8", BoolTensor = "bool" }

-- Returns a function of sizes, whose elements are not set, or of data: FloatTensor(2, 3), FloatTensor {2, 3}.
local function class(dtype)
    return function(first, ...)
        if first == nil then return core.empty({ 0 }, dtype) end
        if math.type(first) == "integer" then return core.empty({ first, ... }, dtype) end
        return core.tensor(first, dtype)
    end
end
for name, dtype in pairs(classes) do types[name] = class(dtype) end
types.Tensor = class "float32"

--- Returns the tensor itself, if it fits already, or a new tensor of the data.
function types.as_tensor(data, dtype, device)
    if type(dtype) == "table" and getmetatable(dtype) == nil then dtype, device = dtype.dtype, dtype.device end
    if not core.is_tensor(data) then return core.tensor(data, dtype, device) end
    if dtype == nil and device == nil then return data end
    return methods.to(data, device, dtype)
end

--- Returns the number of elements of a tensor.
function types.numel(x) return options.tensor("numel", x).numel end

-- ---- Calls in PyTorch's form ----------------------------------------------------------------------------------------

local function is_sizes(value) return type(value) == "table" and getmetatable(value) == nil and (#value > 0 or next(value) == nil) end

--- Returns random integers in [low, high); randint(high, {sizes}) begins at 0.
function types.randint(low, high, ...)
    if is_sizes(high) then return core.randint(0, low, high, ...) end
    return core.randint(low, high, ...)
end

--- Returns random integers in [low, high) in the shape of a tensor; randint_like(x, high) begins at 0.
function types.randint_like(x, low, high, ...)
    if high == nil or type(high) == "table" then return core.randint_like(x, 0, low, high, ...) end
    return core.randint_like(x, low, high, ...)
end

--- Returns sums of products of a list of tensors, or of the tensors one by one.
function types.einsum(equation, first, ...)
    if core.is_tensor(first) then return core.einsum(equation, { first, ... }) end
    return core.einsum(equation, first, ...)
end

-- ---- Methods --------------------------------------------------------------------------------------------------------

words.randint_like = types.randint_like

function words.byte(tensor) return methods.to(tensor, "uint8") end

function words.char(tensor) return methods.to(tensor, "int8") end

function words.short()
    core.raise("unsupported", "short", "Yoke has no dtype int16; write x:int() for int32, or x:char() for int8")
end

function words.nelement(tensor) return tensor.numel end

function words.element_size(tensor) return tensor.itemsize end

function words.is_floating_point(tensor) return tensor.dtype:find "float" ~= nil end

--- Returns the strides, a list that counts from 1 as Lua's do, or the stride of an axis, counted from 0.
function words.stride(tensor, axis)
    local strides = tensor.strides
    if axis == nil then return strides end
    if math.type(axis) ~= "integer" then
        core.raise("type", "stride", ("argument 'axis' is %s; it takes an integer"):format(options.shown(axis)))
    end
    local place = axis < 0 and axis + #strides or axis
    if place < 0 or place >= #strides then
        core.raise("index", "stride", ("axis %d is out of range for a tensor of %d axes"):format(axis, #strides))
    end
    return strides[place + 1]
end

--- Returns a matrix with its axes exchanged, as a view; a tensor of fewer axes itself.
function words.t(tensor)
    if tensor.ndim > 2 then
        core.raise("value", "t", ("the tensor has %d axes; it must have at most two; write x.mT, or x:transpose(-2, -1)"):format(tensor.ndim))
    end
    return tensor.ndim < 2 and tensor or methods.transpose(tensor, 0, 1)
end

--- Returns the tensor with another dtype; without a dtype, the name of the tensor's type.
function words.type(tensor, dtype)
    if dtype ~= nil then
        local word = type(dtype) == "string" and dtype:match "(%w+Tensor)$"
        return methods.to(tensor, classes[word] or dtype)
    end
    local kind = tensor.device.kind
    for name, each in pairs(classes) do
        if each == tensor.dtype then return "yoke." .. (kind == "cpu" and "" or kind .. ".") .. name end
    end
    return "yoke." .. (kind == "cpu" and "" or kind .. ".") .. tensor.dtype
end

function words.type_as(tensor, other) return methods.to(tensor, options.tensor("type_as", other)) end

for name, op in pairs { expand_as = "expand", view_as = "view", reshape_as = "reshape" } do
    words[name] = function(tensor, other) return methods[op](tensor, options.tensor(name, other).shape) end
end

-- Returns the options of a call that makes a tensor, with the dtype and device of another tensor for missing options.
local function like(tensor, given)
    local all = { dtype = tensor.dtype, device = tensor.device }
    for name, value in pairs(given or {}) do all[name] = value end
    return all
end

-- Splits arguments into those before a trailing table of options, and this table.
local function split(...)
    local all = table.pack(...)
    local last = all[all.n]
    local is_named = type(last) == "table" and getmetatable(last) == nil and #last == 0 and next(last) ~= nil
    if is_named then all.n = all.n - 1 end
    return all, is_named and last or nil
end

for _, name in ipairs { "zeros", "ones", "empty", "full" } do
    local create = core.named_op(name, "new_" .. name)
    words["new_" .. name] = function(tensor, ...)
        local all, given = split(...)
        all[all.n + 1] = like(tensor, given)
        return create(table.unpack(all, 1, all.n + 1))
    end
end

function words.new_tensor(tensor, data, given) return core.tensor(data, like(tensor, given)) end

options.check_self(words, "tensor", core.is_tensor)
for name, method in pairs(words) do methods[name] = method end

return types
