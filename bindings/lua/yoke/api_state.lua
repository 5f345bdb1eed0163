---@meta yoke
-- For editors (LuaLS): states in files.

---@class yoke
---@field none table what stands for no value in a state, in Lua and as Python's None
local yoke = {}

---The table as a list of a state, also where it is empty: yoke.list{}.
---@param items table
---@return table items
function yoke.list(items) end

---The table as a dict of a state, also where its keys are 1 to n: yoke.dict{"first", "second"}.
---@param items table
---@return table items
function yoke.dict(items) end

---@class yoke.Work
local Work = {}

---Waits for the end of the work, at most `timeout` seconds. Returns true; or nil and the work's error; or nil and a
---timeout if the work goes on.
---@param timeout? number
---@return boolean? ended, yoke.Error? why
function Work:wait(timeout) end

---Returns whether the work has ended, well or not.
---@return boolean
function Work:done() end

---Returns the done bytes and all bytes.
---@return integer bytes, integer of
function Work:progress() end

---Writes a state to a safetensors file. At any stop of the process or the machine the file at `path` is whole: the
---former or the new file. A state consists of booleans, numbers, strings, tensors, tables (1 to n is a list, any
---other table a dict with strings and integers as keys) and objects with a method state_dict. A dict of tensors
---gives the same file as other writers. With max_shard, "5GiB" or bytes, a state with more bytes of tensors is a set
---as in HuggingFace's libraries: an index, "model.safetensors.index.json" for "model.safetensors", and the files
---named in it. If only the second argument is a string, it is the path. Raises for a value that cannot be saved, with
---its place; nil and an error if the system refuses.
---@param path string
---@param state any
---@param options? {metadata: table<string, string>?, max_shard: string|integer|nil}
---@return yoke.Work? work, yoke.Error? why
function yoke.save(path, state, options) end

---Loads the state in a safetensors file or a set of files, from any writer; nil and an error if it is damaged or the
---system refuses. A path is a file, the index of a set, a file replaced by a set, or a folder with one of these. On
---the CPU tensors are pages of the file, read at the first access and private after a write. With {mmap = false}, or
---on another device, tensors are copies. dtype casts floating tensors. names, a prefix or a function of a name,
---selects tensors; they come as a dict by their names in the file.
---@param path string
---@param options? {device: yoke.Device|string|integer|nil, mmap: boolean?, dtype: yoke.dtype?, names: string|fun(name: string): boolean?, map_location: yoke.Device|string|integer|nil, weights_only: boolean?}
---@return any state, yoke.Error? why
function yoke.load(path, options) end

---Describes a safetensors file or a set of files without the data; nil and an error as yoke.load.
---@param path string
---@return {path: string, kind: "file"|"set", files: table<string, integer>, bytes: integer, header_bytes: integer, has_tree: boolean, metadata: table<string, string>, tensors: table<string, {dtype: string, shape: integer[], bytes: integer, offset: integer, file: string?}>}? info, yoke.Error? why
function yoke.load_info(path) end

---@class yoke.CheckpointManager
---@field folder string
---@field keep integer
local CheckpointManager = {}

---Saves a state as a step and replaces a step of the same number; then the oldest steps are removed. The state is
---that of the call, even if written later: work:wait() ends when the step is there. nil and an error if the system
---refuses, or another process writes to the folder; raises for a value that cannot be saved, with its place.
---@param step integer
---@param state any
---@param options? {metadata: table<string, string>?, blocking: boolean?}
---@return yoke.Work? work, yoke.Error? why
function CheckpointManager:save(step, state, options) end

---The newest step; nil where there is none; nil and an error where the system refuses.
---@return integer? step, yoke.Error? why
function CheckpointManager:latest() end

---Lists all steps in the order of their saves: the newest is the last.
---@return integer[]? steps, yoke.Error? why
function CheckpointManager:steps() end

---Loads the state of a step; without `step`, of the newest whole step, with a warning about damaged steps; nil and
---an error if there is no such step. `into` has the objects that continue from the state, {net = net, optimizer =
---optimizer}: each takes the state saved under its name. If a state does not fit, an error lists all misfits, and
---nothing is changed. verify = false skips the check of the files' hashes.
---@param options? {step: integer?, into: table<string, any>?, device: yoke.Device|string|integer|nil, verify: boolean?}
---@return any state, yoke.Error? why
function CheckpointManager:load(options) end

---Releases the folder for another writer.
function CheckpointManager:close() end

---Keeps the newest states of a run in a folder, made by the first save. folder/step-N has state.safetensors and
---MANIFEST.json with the hash of each file, and gets its name last, when all its data is on the disk.
---@param folder string
---@param options? {keep: integer?}
---@return yoke.CheckpointManager manager
function yoke.CheckpointManager(folder, options) end

---Runs fn in yoke.poll() once a signal has asked the process to end, and then passes the signal to its former
---disposition. TERM by default ends the process with the status of its signal, an ignored signal is ignored, a
---handler of the host program is called. work:wait() and waits of device() and select() poll as well; any other call
---ends first. Several registrations, also of other states and the host program, all run, the newest of a state
---first; the last passes the signal on. Until then the same signal counts once, and other signals wait. If the
---process goes on, the registration goes on too.
---
---An error of fn is raised from the poll and replaces the former effect; this registration then ends. A closed state
---drops its registrations. A forked child has none.
---
---`signals` are "TERM" or "SIGTERM", INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP and PWR. For an ignored signal, as
---HUP under nohup, fn runs too.
---@param fn fun()
---@param options? {signals: string|string[]?} TERM if not given
---@return yoke.Preemption handle
function yoke.on_preempt(fn, options) end

---@class yoke.Preemption
local Preemption = {}

---Ends the registration of fn. If there is no other registration, the former handlers come back. A <close> variable
---does the same.
function Preemption:remove() end

---Delays a signal until release(), wherever a call polls: fn does not run, and the former effect waits.
function Preemption:hold() end

---Ends the delay; the next poll runs fn if a signal arrived meanwhile.
function Preemption:release() end
