--- PyTorch's spellings of what a tensor has by another name: x:half(), x:size(0), x:cuda().
local core = require "yoke.core"
local options = require "yoke.options"

local methods = core.tensor_methods
local habits = {}

local dtypes = { half = "float16", bfloat16 = "bfloat16", float = "float32", double = "float64", int = "int32", long = "int64",
    bool = "bool" }
for name, dtype in pairs(dtypes) do
    habits[name] = function(tensor) return methods.to(tensor, dtype) end
end

--- Returns the shape, a list that counts from 1 as Lua's do, or the length of an axis, counted from 0.
function habits.size(tensor, axis)
    local shape = tensor.shape
    if axis == nil then return shape end
    if math.type(axis) ~= "integer" then
        core.raise("type", "size", ("argument 'axis' is %s; it takes an integer"):format(tostring(axis)))
    end
    local place = axis < 0 and axis + #shape or axis
    if place < 0 or place >= #shape then
        core.raise("index", "size", ("axis %d is out of range for a tensor of %d axes"):format(axis, #shape))
    end
    return shape[place + 1]
end

function habits.dim(tensor) return tensor.ndim end

function habits.zero_(tensor) return methods.fill_(tensor, 0) end

--- Returns the part at one index of an axis, without that axis; a view.
function habits.select(tensor, axis, index)
    for _, given in ipairs { { "axis", axis }, { "index", index } } do
        if math.type(given[2]) ~= "integer" then
            core.raise("type", "select", ("argument '%s' is %s; it takes an integer"):format(given[1], tostring(given[2])))
        end
    end
    local length = habits.size(tensor, axis)
    local start = index < 0 and index + length or index
    if start < 0 or start >= length then
        core.raise("index", "select", ("argument 'index' is %d; it must be %d to %d for axis %d"):format(index, -length,
            length - 1, axis))
    end
    return methods.squeeze(methods.slice(tensor, axis, start, start + 1), axis)
end

-- The current CUDA device, or the first.
local function default_cuda()
    local current = core.current_device()
    return current.kind == "cuda" and current or "cuda"
end

--- Returns the tensor on a CUDA device: the current, the first, or the device of an index.
function habits.cuda(tensor, device)
    if device == nil then
        device = default_cuda()
    elseif math.type(device) == "integer" then
        device = "cuda:" .. device
    elseif not tostring(device):find "^cuda" then
        core.raise("value", "cuda", ("argument 'device' is %s, which is not a CUDA device; write to(\"%s\") instead"):format(
            tostring(device), tostring(device)))
    end
    return methods.to(tensor, device)
end

options.check_self(habits, "tensor", core.is_tensor)
for name, method in pairs(habits) do methods[name] = method end
