---@meta yoke
-- For editors (LuaLS): PyTorch's spellings of what a tensor has by another name.

---@class yoke.Tensor
---@field T yoke.Tensor a view with the axes in reverse order
---@field mT yoke.Tensor a view with the last two axes exchanged
local Tensor = {}

---Returns to("float16").
---@return yoke.Tensor
function Tensor:half() end

---Returns to("bfloat16").
---@return yoke.Tensor
function Tensor:bfloat16() end

---Returns to("float32").
---@return yoke.Tensor
function Tensor:float() end

---Returns to("float64").
---@return yoke.Tensor
function Tensor:double() end

---Returns to("int32").
---@return yoke.Tensor
function Tensor:int() end

---Returns to("int64").
---@return yoke.Tensor
function Tensor:long() end

---Returns to("bool").
---@return yoke.Tensor
function Tensor:bool() end

---Returns the tensor on a CUDA device: the current, the first, or the device of an index.
---@param device? yoke.Device|string|integer
---@return yoke.Tensor
function Tensor:cuda(device) end

---Returns the shape, or the length of an axis, counted from 0.
---@param axis? integer
---@return integer[]|integer
function Tensor:size(axis) end

---Returns the part at one index of an axis, without that axis; a view.
---@param axis integer
---@param index integer
---@return yoke.Tensor
function Tensor:select(axis, index) end

---The number of axes.
---@return integer
function Tensor:dim() end

---Sets every element to 0.
---@return yoke.Tensor self
function Tensor:zero_() end

---Moves and casts the tensor itself, a leaf, and its gradient; returns it. All holders of the tensor have the new
---values. Also x:to_(dtype) and x:to_{device =, dtype =}.
---@param device? yoke.Device|string|integer
---@param dtype? yoke.dtype
---@return yoke.Tensor
function Tensor:to_(device, dtype) end
