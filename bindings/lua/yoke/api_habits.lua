---@meta yoke
-- For editors (LuaLS): PyTorch's spellings of what a tensor has by another name.

---@class yoke.Tensor
---@field T yoke.Tensor a view with the axes in reverse order
---@field mT yoke.Tensor a view with the last two axes exchanged
local Tensor = {}

---The same as to("float16").
---@return yoke.Tensor
function Tensor:half() end

---The same as to("bfloat16").
---@return yoke.Tensor
function Tensor:bfloat16() end

---The same as to("float32").
---@return yoke.Tensor
function Tensor:float() end

---The same as to("float64").
---@return yoke.Tensor
function Tensor:double() end

---The same as to("int32").
---@return yoke.Tensor
function Tensor:int() end

---The same as to("int64").
---@return yoke.Tensor
function Tensor:long() end

---The same as to("bool").
---@return yoke.Tensor
function Tensor:bool() end

---The tensor on a CUDA device: the current one, or the first, or the one of an index.
---@param device? yoke.Device|string|integer
---@return yoke.Tensor
function Tensor:cuda(device) end

---The shape, or the length of one axis, which counts from 0.
---@param axis? integer
---@return integer[]|integer
function Tensor:size(axis) end

---The number of axes.
---@return integer
function Tensor:dim() end

---Sets every element to 0.
---@return yoke.Tensor self
function Tensor:zero_() end

---Moves and casts the tensor itself, a leaf, and its gradient; returns it. Whoever holds it has the new values. Also
---x:to_(dtype) and x:to_{device =, dtype =}.
---@param device? yoke.Device|string|integer
---@param dtype? yoke.dtype
---@return yoke.Tensor
function Tensor:to_(device, dtype) end
