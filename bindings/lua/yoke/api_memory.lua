---@meta yoke
-- For editors (LuaLS): memory of devices.

---@class yoke
local yoke = {}

---@param device? yoke.Device|string|integer
---@return integer bytes
function yoke.memory_allocated(device) end

---@param device? yoke.Device|string|integer
---@return integer bytes
function yoke.max_memory_allocated(device) end

---@param device? yoke.Device|string|integer
---@return integer bytes
function yoke.memory_reserved(device) end

---@param device? yoke.Device|string|integer
---@return integer bytes
function yoke.max_memory_reserved(device) end

---@param device? yoke.Device|string|integer
---@return integer bytes reserved but not allocated
function yoke.memory_cached(device) end

---@param device? yoke.Device|string|integer
function yoke.reset_peak_memory_stats(device) end

---@param device? yoke.Device|string|integer
---@return integer free bytes
---@return integer total bytes
function yoke.mem_get_info(device) end

---Tensors alive in the process, Lua's and other hosts', and each that the tape keeps (saved_tensors).
---@return integer
function yoke.live_tensor_count() end

---All that is known of a device's memory, by the keys of torch.cuda.memory_stats and some more (docs/memory.md).
---@param device? yoke.Device|string|integer
---@return table<string, number> stats
function yoke.memory_stats(device) end

---Totals and counts of memory_stats start again from 0.
---@param device? yoke.Device|string|integer
function yoke.reset_accumulated_memory_stats(device) end

---@param device? yoke.Device|string|integer
function yoke.empty_cache(device) end

---@param enabled boolean
function yoke.set_caching(enabled) end

---@return boolean
function yoke.is_caching() end

---Changes the allocator's settings named in a text, for all devices; other settings stay:
---  expandable_segments (True): new memory comes as chunks mapped to addresses, if the device has virtual memory
---  garbage_collection_threshold (0): idle memory goes back before growth beyond this part of the device, below 1
---  ask_fences (False): whether a block used by another stream is reused as soon as its work is seen to be done;
---    False: its stream waits for this work, and addresses are the same in each run
---An unknown or repeated key and a value out of range raise "value", and nothing is changed.
---@param settings string "ask_fences:True,expandable_segments:False"
function yoke.set_alloc_conf(settings) end

---@return string settings all of them, as set_alloc_conf takes them
function yoke.get_alloc_conf() end

---Calls fn(device, bytes) before a request of this size fails with the error "oom". By then all cached memory was
---given back, and garbage was collected. If fn returns a true value, the request tries again, at most three times.
---Several functions are called in the order of their addition, until handle:remove(). fn runs in the state of the
---request, within the call that needs the memory, such as an op, backward() or step(). An error of fn is a warning
---(see warn) and counts as false.
---@param fn fun(device: yoke.Device, bytes: integer): any
---@return yoke.OutOfMemoryHandle handle
function yoke.on_out_of_memory(fn) end

---@class yoke.OutOfMemoryHandle
local OutOfMemoryHandle = {}

---fn is no longer asked. A <close> variable does the same.
function OutOfMemoryHandle:remove() end
