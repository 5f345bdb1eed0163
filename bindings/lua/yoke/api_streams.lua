---@meta yoke
-- For editors (LuaLS): streams, events, graphs and checkpoint scopes.

---Order of work on a device. A closed stream keeps its work.
---@class yoke.Stream
---@field handle integer the device's own handle, 0 for the default stream
---@field device yoke.Device
local Stream = {}

---Waits until all work given to it has finished.
function Stream:synchronize() end

---@return boolean idle
function Stream:query() end

---Orders later work of the stream after the event.
---@param event yoke.Event
function Stream:wait_event(event) end

---Orders later work of this stream after the work given to `stream` so far.
---@param stream yoke.Stream
function Stream:wait_stream(stream) end

---Puts an event, a new event if none is given, after the stream's work so far.
---@param event? yoke.Event
---@return yoke.Event
function Stream:record_event(event) end

function Stream:close() end

---A point in the work of a stream.
---@class yoke.Event
local Event = {}

---@param stream? yoke.Stream the current one if not given
function Event:record(stream) end

---@param stream? yoke.Stream the current one if not given
function Event:wait(stream) end

---@return boolean reached true too for one that was never recorded
function Event:query() end

function Event:synchronize() end

---@param last yoke.Event
---@return number milliseconds
function Event:elapsed_time(last) end

function Event:close() end

---@class yoke
local yoke = {}

---A stream of a device. Also yoke.Stream{device =, priority =}.
---@param device? yoke.Device|string|integer
---@param priority? integer greater ones run first
---@return yoke.Stream
function yoke.Stream(device, priority) end

---An event. Also yoke.Event{timing = true}.
---@param timing? boolean whether it keeps the time
---@return yoke.Event
function yoke.Event(timing) end

---Gives work to a stream and makes its device current: until the scope is closed, or while fn runs; its results are
---returned. The scope belongs to the running coroutine.
---@param stream yoke.Stream
---@return yoke.Scope
---@overload fun(stream: yoke.Stream, fn: function, ...): ...
function yoke.stream(stream) end

---@param device? yoke.Device|string|integer
---@return yoke.Stream
function yoke.current_stream(device) end

---Wraps a stream of the host program. The stream must outlive the object, and the host program destroys it.
---@param native integer|lightuserdata 0 for the default stream, on CUDA 1 too; 2, that of each thread, is refused
---@param device? yoke.Device|string|integer
---@return yoke.Stream
function yoke.wrap_stream(native, device) end

---Graph of a whole step, captured once and replayed. graph:capture(fn, ...) records fn's work without running it,
---and returns fn's results; graph:replay() runs the work in the same memory. Within a capture, waits for the device
---and copies of host memory raise "state". Also close().
---@param device yoke.Device|string|integer|nil
---@return table
function yoke.Graph(device) end

---Returns the machine's cards (usable or not, with `reason`), networks, facts and topology. Fields as in
---yoke/inventory.h; unknown values are nil. No CUDA context is made.
---@return {cards: table[], networks: table[], facts: table<string, string>, topology: table}
function yoke.inventory() end

---Returns how the cards are joined: links[a][b].label, counted from 1; printed, the matrix of `nvidia-smi topo -m`.
---@return table
function yoke.topology() end

---Lists the models known to Yoke, with their makers' figures in base units.
---@return table[]
function yoke.catalog() end

---The model that a driver's name, as "NVIDIA H200", and total memory in bytes belong to.
---@param name string
---@param memory? integer 0: not known
---@return table? model
function yoke.catalog_find(name, memory) end

---Calls fn(...) once, in a scope: results of its ops are not kept for backward; backward runs the necessary ops
---again, bit for bit. Options: policy, for results that are kept nevertheless. "full" or nil: no results; "matmul":
---results of matrix products and attention; a list of op names; a function, called for each op with a table {name,
---shape, dtype, bytes, work} as the scope closes, with the answer "keep", "recompute" or "offload"; a MemoryBudget.
---offload: kept tensors, and tensors that scopes read from each other, wait in pinned host memory; no effect on the
---CPU.
---@param options {policy: string|string[]|function|yoke.MemoryBudget|nil, offload: boolean?}|function
---@param fn function
---@param ... any
---@return any ... what fn returns
---@overload fun(fn: function, ...): ...
function yoke.checkpoint(options, fn, ...) end

---Opens such a scope without a function, until it is closed. The scope belongs to the running coroutine.
---@param options? {policy: string|string[]|function|yoke.MemoryBudget|nil, offload: boolean?}
---@return yoke.Scope
function yoke.checkpoint_scope(options) end

---x through all functions, as `segments` parts of near the same length, each in a scope but the last, whose results
---backward wants at once.
---@param fns function[]|yoke.nn.Module
---@param segments integer
---@param x any
---@param options? {policy: string|string[]|function|yoke.MemoryBudget|nil, offload: boolean?}
---@return any
function yoke.checkpoint_sequential(fns, segments, x, options) end

---@class yoke.MemoryBudget
local MemoryBudget = {}

---Limit for the memory of a step's activations: a share of their peak without a budget, above 0 and at most 1, or
---bytes as "2GiB". A policy over a whole forward: it finds the cuts of the forward into scopes, and their kept
---tensors. The first step measures; later steps follow a plan as long as ops and shapes are the same. No value
---depends on the budget.
---@param amount number|string
---@return yoke.MemoryBudget
function yoke.MemoryBudget(amount) end

---Returns figures of the last step. Bytes are those beyond the memory at the start of forward and beyond new
---gradients. limit and plain_peak, the peak without a budget, are 0 until measured. Planned values stand beside
---measured values; measured_seconds, the time for recomputed values, on the CPU only.
---@return {steps: integer, forwards: integer, cuts: integer, limit: integer, plain_peak: integer, held: integer, measured_held: integer, peak: integer, measured_peak: integer, seconds: number, measured_seconds: number}
function MemoryBudget:report() end
