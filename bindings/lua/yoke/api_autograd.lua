---@meta yoke
-- For editors (LuaLS): hooks on gradients and functions with a backward of their own.

---@class yoke.Hook
local Hook = {}

---The hook is called no longer.
function Hook:remove() end

---@class yoke.Tensor
---@field retains_grad boolean
local Tensor = {}

---hook(gradient) runs in each backward to this tensor, before a leaf adds the gradient. A returned tensor of the same
---shape, dtype and device takes its place.
---@param hook fun(gradient: yoke.Tensor): yoke.Tensor?
---@return yoke.Hook
function Tensor:register_hook(hook) end

---This result of an op keeps its gradient, as a leaf does.
function Tensor:retain_grad() end

---@class yoke.FunctionContext
---@field needs_input_grad boolean[]
---@field saved_tensors yoke.Tensor[] in backward
---@field save_for_backward fun(self: yoke.FunctionContext, ...: yoke.Tensor?)
---@field mark_dirty fun(self: yoke.FunctionContext, ...: yoke.Tensor)
---@field mark_non_differentiable fun(self: yoke.FunctionContext, ...: yoke.Tensor)
---@field set_materialize_grads fun(self: yoke.FunctionContext, value: boolean)

---@class yoke.Function
---@field name string
---@field apply fun(...): ...
---@overload fun(...): ...

---@class yoke.autograd
---@field Function fun(given: { forward: function, backward: function, name?: string, setup_context?: function }): yoke.Function
---@field backward fun(tensor: yoke.Tensor, ...)
---@field grad function
---@field no_grad function
---@field enable_grad function
---@field inference_mode function
---@field detect_anomaly fun(options?: { check_nan?: boolean }, fn?: function, ...): ...

---@class yoke
---@field autograd yoke.autograd
---@field inference_mode fun(fn?: function, ...): ... as no_grad
---@field set_float32_matmul_precision fun(precision: "highest"|"high"|"medium") backends.allow_tf32 by PyTorch's word
---@field get_float32_matmul_precision fun(): string
