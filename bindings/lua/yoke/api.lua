---@meta yoke
-- For editors (LuaLS): what of the module is written by hand. The ops stand in meta.lua.

---Error, raised by ops and misuse, and returned after nil by calls with outside causes of failure.
---@class yoke.Error
---@field code "value"|"type"|"index"|"closed"|"state"|"unsupported"|"oom"|"unavailable"|"device_lost"|"timeout"|"cancelled"|"comm"|"checkpoint"|"io"|"forked"|"internal"
---@field message string
---@field device string the device it happened on, or ""
---@field call string
---@field where string the line of the script, "file:12: "
---@field native_code? integer the driver's or system's own number
---@field cause? yoke.Error
---@field details? table<string, integer|string> of code "oom": where the memory is, in bytes

---@class yoke.Device
---@field kind string "cpu" or "cuda"
---@field index integer
---@field spec string what opens it again, "cuda:1"
---@field name string
---@field free_memory integer bytes
---@field total_memory integer bytes
local Device = {}

---Waits for all work given to the device.
function Device:synchronize() end

---Returns whether the device has a feature for a dtype. "compute": its ops take the dtype. "tensor_cores": it has
---units that multiply matrices of the dtype faster than float32 (on a CPU: AVX512-BF16).
---@param dtype yoke.dtype
---@param feature? "compute"|"tensor_cores" "compute" if not given
---@return boolean
function Device:supports(dtype, feature) end

---A strided view of memory on one device. x[i] is the view at i along axis 0, counted from 0; x[i] = v
---writes; #x is the length of axis 0; + - * / and unary minus are ops.
---@class yoke.Tensor
---@field shape integer[] counted from 1; prints, joins and compares by its numbers
---@field strides integer[] in elements
---@field dtype yoke.dtype
---@field device yoke.Device
---@field ndim integer
---@field numel integer
---@field nbytes integer
---@field itemsize integer
---@field requires_grad boolean can be set
---@field grad yoke.Tensor|nil can be set
---@field is_leaf boolean
---@operator add(yoke.Tensor|number): yoke.Tensor
---@operator sub(yoke.Tensor|number): yoke.Tensor
---@operator mul(yoke.Tensor|number): yoke.Tensor
---@operator div(yoke.Tensor|number): yoke.Tensor
---@operator pow(yoke.Tensor|number): yoke.Tensor
---@operator idiv(yoke.Tensor|number): yoke.Tensor
---@operator mod(yoke.Tensor|number): yoke.Tensor
---@operator band(yoke.Tensor|integer): yoke.Tensor
---@operator bor(yoke.Tensor|integer): yoke.Tensor
---@operator bxor(yoke.Tensor|integer): yoke.Tensor
---@operator shl(yoke.Tensor|integer): yoke.Tensor
---@operator shr(yoke.Tensor|integer): yoke.Tensor
---@operator unm: yoke.Tensor
---@operator bnot: yoke.Tensor
---@operator len: integer
local Tensor = {}

---Nested lists of the elements; a number or boolean for a 0-dim tensor.
---@return table|number|boolean
function Tensor:tolist() end

---The value of a tensor of one element.
---@return number|boolean
function Tensor:item() end

---The elements as bytes, row-major.
---@return string
function Tensor:tobytes() end

---Overwrites the elements with row-major bytes.
---@param bytes string
---@return yoke.Tensor self
function Tensor:copy_from_string(bytes) end

---On another device, with another dtype, or itself. Also x:to(dtype) and x:to{device =, dtype =, non_blocking =}.
---@param device? yoke.Device|string|integer
---@param dtype? yoke.dtype
---@return yoke.Tensor
function Tensor:to(device, dtype) end

---@return yoke.Tensor
function Tensor:cpu() end

---Copies the tensor to host memory that a device reads and writes directly; returns the tensor itself if it is
---there.
---@return yoke.Tensor
function Tensor:pin_memory() end

---@return boolean
function Tensor:is_pinned() end

---Notes that work unseen by Yoke uses the memory on a stream.
---@param stream yoke.Stream
function Tensor:record_stream(stream) end

---Notes that work unseen by Yoke uses the memory, and ends before an event.
---@param event yoke.Event
function Tensor:record_use(event) end

---Indexing by NumPy's rules: integers, {first, last, step} (false for none), "...", yoke.newaxis, integer tensors,
---masks and booleans. x[item] and x[{item, …}] are the same, and may be assigned to.
---@param ... integer|table|string|yoke.Tensor|boolean
---@return yoke.Tensor part a view, or a copy where an item is a tensor or a boolean
function Tensor:index(...) end

---Gradients of this tensor in the leaves behind it, or in `inputs` alone. Also x:backward{gradient =, retain_graph =}.
---@param gradient? yoke.Tensor
---@param retain_graph? boolean
---@param create_graph? false there are no second-order gradients
---@param inputs? yoke.Tensor|yoke.Tensor[]
function Tensor:backward(gradient, retain_graph, create_graph, inputs) end

---@param required? boolean true if not given
---@return yoke.Tensor self
function Tensor:requires_grad_(required) end

---Returns a tensor of the same memory without history on the tape.
---@return yoke.Tensor
function Tensor:detach() end

---@param set_to_none? boolean true if not given; false fills with zeros
function Tensor:zero_grad(set_to_none) end

---Releases the tensor now; any later use is an error. A <close> variable does the same.
function Tensor:close() end

---@return boolean
function Tensor:is_closed() end

---@return boolean
function Tensor:is_contiguous() end

---Returns a number shared by all views of a storage.
---@return integer
function Tensor:storage_id() end

---@return integer
function Tensor:storage_nbytes() end

---The address of the first element.
---@return integer
function Tensor:data_ptr() end

---A grad mode in force until it is closed: local _ <close> = yoke.no_grad()
---@class yoke.Scope
local Scope = {}
function Scope:close() end

---@class yoke
---@field version string
---@field newaxis string
---@field nn table
---@field backends { allow_tf32: boolean, cudnn: yoke.Cudnn } of the process; allow_tf32: GPUs may round products of float32 to TF32
---@field optim table
---@field comm yoke.comm
---@field DistributedDataParallel fun(module: yoke.nn.Module, options?: {group: yoke.Group, bucket_mb?: number, compression?: string, device_ids?: (yoke.Device|string|integer)[], output_device?: yoke.Device|string|integer}): yoke.DistributedDataParallel
---@field data table
local yoke = {}

---A tensor of nested lists, a number, a boolean or another tensor.
---@param data table|number|boolean|yoke.Tensor
---@param dtype? yoke.dtype
---@param device? yoke.Device|string|integer
---@param requires_grad? boolean
---@return yoke.Tensor
---@overload fun(data: any, options: { dtype?: yoke.dtype, device?: any, requires_grad?: boolean }): yoke.Tensor
function yoke.tensor(data, dtype, device, requires_grad) end

---A tensor with a copy of row-major bytes.
---@param bytes string
---@param shape integer|integer[]
---@param dtype yoke.dtype
---@param device? yoke.Device|string|integer
---@return yoke.Tensor
function yoke.frombuffer(bytes, shape, dtype, device) end

---@return boolean
function yoke.is_tensor(value) end

---@param a yoke.Tensor
---@param b yoke.Tensor
---@return boolean
function yoke.shares_memory(a, b) end

---Gradients of outputs with respect to inputs, which are not added to the leaves.
---@param outputs yoke.Tensor|yoke.Tensor[]
---@param inputs yoke.Tensor|yoke.Tensor[]
---@param grad_outputs? (yoke.Tensor|false)[]
---@param retain_graph? boolean
---@param create_graph? false there are no second-order gradients
---@param allow_unused? boolean false for an input on which no output depends; else an error
---@return (yoke.Tensor|false)[]
---@overload fun(outputs: any, inputs: any, options: { grad_outputs?: table, retain_graph?: boolean, allow_unused?: boolean }): (yoke.Tensor|false)[]
function yoke.grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused) end

---Ops are not recorded: until the scope is closed, or while fn runs; its results are returned. The mode belongs to
---the running coroutine.
---@return yoke.Scope
---@overload fun(fn: function, ...): ...
function yoke.no_grad() end

---@return yoke.Scope
---@overload fun(fn: function, ...): ...
function yoke.enable_grad() end

---@return boolean
function yoke.is_grad_enabled() end

---Ops run in a suitable dtype: products in a 16-bit float, ops with a need for range or precision in float32.
---Options: dtype ("float16", "bfloat16", or nil for the device's usual dtype), enabled, cache_enabled. The mode
---belongs to the running coroutine.
---@param options table|yoke.dtype|nil
---@return yoke.Scope
---@overload fun(options: table|yoke.dtype|nil, fn: function, ...): ...
function yoke.autocast(options) end

---@return boolean
function yoke.is_autocast_enabled() end

---The half that ops on a device are cast to under autocast.
---@param device yoke.Device|string|integer|nil
---@return yoke.dtype
function yoke.get_autocast_dtype(device) end

---Loss scaling for float16, by the rules of PyTorch's GradScaler: scaler:scale(loss):backward(),
---scaler:step(optimizer), scaler:update(). Also unscale_(optimizer), get_scale(), state_dict() and
---load_state_dict(dict). Options are init_scale, growth_factor, backoff_factor, growth_interval and enabled.
---@param options table|nil
---@return table
function yoke.GradScaler(options) end

---Multiplies all gradients by the same factor, so that their norm as a vector is max_norm at most; returns the norm
---before.
---@param params yoke.Tensor[]
---@param max_norm number
---@param norm_type? number 2, 1, math.huge or any number above 0
---@return yoke.Tensor
function yoke.clip_grad_norm_(params, max_norm, norm_type) end

---Lists the tensors kept by the tape for the gradient of the op that made `tensor`: tables with op, argument, dtype,
---shape, nbytes, and recomputed, if the tensor is recomputed for backward instead of kept.
---@param tensor yoke.Tensor
---@return table[]
function yoke.saved_tensors(tensor) end

---Starts the random numbers of this thread again.
---@param seed integer
function yoke.manual_seed(seed) end

---Returns the state of this thread's random numbers: a uint8 tensor of 16 bytes.
---@return yoke.Tensor
function yoke.get_rng_state() end

---Puts them there again.
---@param state yoke.Tensor
function yoke.set_rng_state(state) end

---A stream of random numbers of its own; `device` is kept as an attribute, the numbers are the same on all.
---@param device? yoke.Device|string|integer
---@param seed? integer
---@return yoke.Generator
function yoke.Generator(device, seed) end

---@class yoke.Generator
---@field device yoke.Device
local Generator = {}

---@param seed integer
---@return yoke.Generator
function Generator:manual_seed(seed) end

---@return yoke.Tensor
function Generator:get_state() end

---@param state yoke.Tensor
---@return yoke.Generator
function Generator:set_state(state) end

---@return yoke.Tensor
function Generator:state_dict() end

---@param state yoke.Tensor
---@return yoke.Generator
function Generator:load_state_dict(state) end

---`local _ <close> = g:use()`, or a function to run with its arguments: random numbers come from g till the end.
---@param fn? function
function Generator:use(fn, ...) end

---Measures a function: `local median, iqr, runs = yoke.Timer(fn):run()`, in seconds a call.
---@param fn function
---@param options? {device?: yoke.Device|string|integer, seconds?: number, warmup?: integer}
---@return yoke.Timer
function yoke.Timer(fn, options) end

---@class yoke.Timer
local Timer = {}

---@return number median
---@return number iqr
---@return integer runs
function Timer:run() end

---@param spec? string|integer|yoke.Device
---@return yoke.Device|nil
---@return yoke.Error? error
function yoke.device(spec) end

---@param kind? string
---@return yoke.Device[]
function yoke.devices(kind) end

---@param kind? string
---@return integer
function yoke.device_count(kind) end

---@param kind? string without one: any accelerator
---@return boolean
function yoke.is_available(kind) end

---@param kind string
---@return string reason "" if it is available
function yoke.why_unavailable(kind) end

---@param device yoke.Device|string|integer
function yoke.set_device(device) end

---@return yoke.Device
function yoke.current_device() end

---@param device? yoke.Device|string|integer
function yoke.synchronize(device) end

---Sets whether ops give the same bits in each run, in the whole process. False at first. The CPU always does.
---@param mode boolean
function yoke.use_deterministic_algorithms(mode) end

---@return boolean
function yoke.are_deterministic_algorithms_enabled() end

---@param n integer 0 for the default
function yoke.set_num_threads(n) end

---@return integer
function yoke.get_num_threads() end

---@return string
function yoke.build_info() end

---@param key string
---@param value? string
function yoke.config_set(key, value) end

---@param key string
---@return string|nil
function yoke.config_get(key) end

---Sends log lines to fn in yoke.poll(); nil sends them back to standard error.
---@param fn? fun(level: string, message: string)
function yoke.set_log_callback(fn) end

---Runs the due callbacks: of the log, then of on_preempt. If a callback raises, the others wait for the next poll.
---work:wait() and waits of device() and select() poll as well.
---@return integer count
function yoke.poll() end

---Waits for all work and gives cached memory back; the next call starts Yoke again.
---@param timeout? number seconds
function yoke.shutdown(timeout) end

---@return table<string, { signature: string, doc: string, family: string }>
function yoke.ops() end
