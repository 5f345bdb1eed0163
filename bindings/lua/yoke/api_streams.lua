---@meta yoke
-- For editors (LuaLS): streams, events, graphs and checkpoint scopes.

---An order of work on one device. One that is closed keeps its work.
---@class yoke.Stream
---@field handle integer the device's own handle, 0 for the default stream
---@field device yoke.Device
local Stream = {}

---Waits until all work given to it has finished.
function Stream:synchronize() end

---@return boolean idle
function Stream:query() end

---What is given to it from now on is done after the event.
---@param event yoke.Event
function Stream:wait_event(event) end

---What is given to it from now on is done after what `stream` was given so far.
---@param stream yoke.Stream
function Stream:wait_stream(stream) end

---Puts an event, a new one unless one is given, behind its work so far.
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

---Gives work to a stream and makes its device the current one: until the scope is closed, or while fn
---runs, whose results it returns. It belongs to the running coroutine.
---@param stream yoke.Stream
---@return yoke.Scope
---@overload fun(stream: yoke.Stream, fn: function, ...): ...
function yoke.stream(stream) end

---@param device? yoke.Device|string|integer
---@return yoke.Stream
function yoke.current_stream(device) end

---A stream that the host program made; it must outlive the object and stays the host's to destroy.
---@param native integer|lightuserdata 0 for the default stream, on CUDA 1 too; 2, that of each thread, is refused
---@param device? yoke.Device|string|integer
---@return yoke.Stream
function yoke.wrap_stream(native, device) end

---A whole step, captured once and replayed: graph:capture(fn, ...) takes down what fn does, without running it, and
---returns what fn returns; graph:replay() runs it, in the same memory. What would wait for the device or bring bytes of
---the host raises "state" within a capture. Also close().
---@param device yoke.Device|string|integer|nil
---@return table
function yoke.Graph(device) end

---What is in the machine: cards (usable or not, with `reason`), networks, facts, topology. Fields as in
---yoke/inventory.h; what is not known is nil. No CUDA context is made.
---@return {cards: table[], networks: table[], facts: table<string, string>, topology: table}
function yoke.inventory() end

---How the cards are joined: links[a][b].label, counted from 1; printed, the matrix of `nvidia-smi topo -m`.
---@return table
function yoke.topology() end

---The models that Yoke knows, with their makers' figures in base units.
---@return table[]
function yoke.catalog() end

---The model that a driver's name, as "NVIDIA H200", and total memory in bytes belong to.
---@param name string
---@param memory? integer 0: not known
---@return table? model
function yoke.catalog_find(name, memory) end

---Calls fn(...) once, in a scope: what its ops make is not kept for backward, which runs those ops again that lead to
---what it needs, bit for bit. Options: policy, whose results are kept all the same: "full" or nil: nobody's; "matmul":
---those of matrix products and attention; a list of op names; a function, which is told of each op as a table {name,
---shape, dtype, bytes, work} as the scope closes, and answers "keep", "recompute" or "offload"; a MemoryBudget.
---offload: what is kept, and what scopes read from each other, waits in pinned host memory; on the CPU nothing moves.
---@param options {policy: string|string[]|function|yoke.MemoryBudget|nil, offload: boolean?}|function
---@param fn function
---@param ... any
---@return any ... what fn returns
---@overload fun(fn: function, ...): ...
function yoke.checkpoint(options, fn, ...) end

---The same without a function: the scope lasts until it is closed. It belongs to the running coroutine.
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

---How much memory the activations of a step may take: a share of their peak without it, above 0 and at most 1, or bytes
---as "2GiB". A policy over a whole forward: it finds where that is cut into scopes, and what these hold. The first step
---learns; later ones follow a plan as long as ops and shapes are the same. No value depends on it.
---@param amount number|string
---@return yoke.MemoryBudget
function yoke.MemoryBudget(amount) end

---Of the last step: bytes are those beside what was there when forward began and beside new gradients; limit and
---plain_peak, the peak without a budget, are 0 until something is known. What was foreseen stands beside what was
---measured; measured_seconds, which go into making values again, on the CPU only.
---@return {steps: integer, forwards: integer, cuts: integer, limit: integer, plain_peak: integer, held: integer, measured_held: integer, peak: integer, measured_peak: integer, seconds: number, measured_seconds: number}
function MemoryBudget:report() end
