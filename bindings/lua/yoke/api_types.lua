---@meta yoke
-- For editors (LuaLS): PyTorch's words for what a tensor has or does under another name.

---@class yoke
---@field double yoke.dtype
---@field float yoke.dtype
---@field half yoke.dtype
---@field int yoke.dtype
---@field long yoke.dtype
---@field amp {autocast: function, GradScaler: function} PyTorch's words for mixed precision
---@field cuda table PyTorch's words for CUDA devices
---@field utils {checkpoint: {checkpoint: function, checkpoint_sequential: function}}
local yoke = {}

---@class yoke.Tensor
---@field is_cuda boolean whether the tensor is on a CUDA device
---@field data yoke.Tensor the tensor without its record; a leaf takes over the memory of an assigned tensor
local Tensor = {}

---Returns the tensor itself if it fits, or tensor(data, dtype, device).
---@param data any
---@param dtype? yoke.dtype
---@param device? yoke.Device|string|integer
---@return yoke.Tensor
function yoke.as_tensor(data, dtype, device) end

---Returns the number of elements.
---@param x yoke.Tensor
---@return integer
function yoke.numel(x) end

---Returns a float32 tensor of these sizes, whose elements are not set, or of the data in a list.
---@return yoke.Tensor
function yoke.Tensor(...) end

---Returns a float32 tensor, as Tensor.
---@return yoke.Tensor
function yoke.FloatTensor(...) end

---Returns a float64 tensor, as Tensor.
---@return yoke.Tensor
function yoke.DoubleTensor(...) end

---Returns a float16 tensor, as Tensor.
---@return yoke.Tensor
function yoke.HalfTensor(...) end

---Returns a bfloat16 tensor, as Tensor.
---@return yoke.Tensor
function yoke.BFloat16Tensor(...) end

---Returns an int64 tensor, as Tensor.
---@return yoke.Tensor
function yoke.LongTensor(...) end

---Returns an int32 tensor, as Tensor.
---@return yoke.Tensor
function yoke.IntTensor(...) end

---Returns an int8 tensor, as Tensor.
---@return yoke.Tensor
function yoke.CharTensor(...) end

---Returns a uint8 tensor, as Tensor.
---@return yoke.Tensor
function yoke.ByteTensor(...) end

---Returns a bool tensor, as Tensor.
---@return yoke.Tensor
function yoke.BoolTensor(...) end

---Returns to("uint8").
---@return yoke.Tensor
function Tensor:byte() end

---Returns to("int8").
---@return yoke.Tensor
function Tensor:char() end

---Raises: there is no int16.
function Tensor:short() end

---Returns the number of elements, as numel.
---@return integer
function Tensor:nelement() end

---Returns the bytes of one element, as itemsize.
---@return integer
function Tensor:element_size() end

---Returns whether the dtype has fractions.
---@return boolean
function Tensor:is_floating_point() end

---Returns the strides, or the stride of an axis, counted from 0.
---@param axis? integer
---@return integer[]|integer
function Tensor:stride(axis) end

---Returns a matrix with its axes exchanged, as a view.
---@return yoke.Tensor
function Tensor:t() end

---Returns to(dtype); without a dtype, PyTorch's name of the type: "yoke.FloatTensor".
---@param dtype? yoke.dtype
---@return yoke.Tensor|string
function Tensor:type(dtype) end

---Returns the tensor with the dtype and on the device of another.
---@param other yoke.Tensor
---@return yoke.Tensor
function Tensor:type_as(other) end

---Returns expand(other.shape).
---@param other yoke.Tensor
---@return yoke.Tensor
function Tensor:expand_as(other) end

---Returns view(other.shape).
---@param other yoke.Tensor
---@return yoke.Tensor
function Tensor:view_as(other) end

---Returns reshape(other.shape).
---@param other yoke.Tensor
---@return yoke.Tensor
function Tensor:reshape_as(other) end

---Returns zeros with the dtype and device of this tensor, if the options have no other.
---@return yoke.Tensor
function Tensor:new_zeros(...) end

---Returns ones with the dtype and device of this tensor, if the options have no other.
---@return yoke.Tensor
function Tensor:new_ones(...) end

---Returns a tensor whose values are not set, with the dtype and device of this tensor.
---@return yoke.Tensor
function Tensor:new_empty(...) end

---Returns a tensor of one value with the dtype and device of this tensor.
---@param shape integer[]
---@param value number
---@param options? table
---@return yoke.Tensor
function Tensor:new_full(shape, value, options) end

---Returns tensor(data) with the dtype and device of this tensor.
---@param data any
---@param options? table
---@return yoke.Tensor
function Tensor:new_tensor(data, options) end
