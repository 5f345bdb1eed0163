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

---Waits for its end, at most `timeout` seconds: true, or nil and what it failed with, or that it goes on.
---@param timeout? number
---@return boolean? ended, yoke.Error? why
function Work:wait(timeout) end

---Whether it has ended, well or not.
---@return boolean
function Work:done() end

---How many bytes of how many are done.
---@return integer bytes, integer of
function Work:progress() end

---Writes a state to a safetensors file: the file at `path` is the former or the new one, whole, whenever the process or
---the machine stops. A state is made of booleans, numbers, strings, tensors, tables (1 to n is a list, any other a dict
---with strings and integers as keys) and what has a method state_dict. A dict of tensors is a file as any other
---writer's. With max_shard, "5GiB" or bytes, a state with more bytes of tensors is a set as HuggingFace's libraries
---have it: an index, "model.safetensors.index.json" for "model.safetensors", and the files that it names. Raises for
---what cannot be saved, with its place; nil and an error where the system refuses.
---@param path string
---@param state any
---@param options? {metadata: table<string, string>?, max_shard: string|integer|nil}
---@return yoke.Work? work, yoke.Error? why
function yoke.save(path, state, options) end

---The state in a safetensors file or a set of them, whoever wrote it; nil and an error where it is damaged or the
---system refuses. A path is a file, the index of a set, a file in the place of which a set stands, or a folder with one
---of these. On the CPU tensors are pages of the file, read when they are touched and private once written; {mmap =
---false}, and any other device, makes copies. dtype casts what floats. names, a prefix or a function of a name, says
---which tensors to load; they come as a dict by their names in the file.
---@param path string
---@param options? {device: yoke.Device|string|integer|nil, mmap: boolean?, dtype: yoke.dtype?, names: string|fun(name: string): boolean?}
---@return any state, yoke.Error? why
function yoke.load(path, options) end

---What a safetensors file or a set of them holds, without the data; nil and an error as yoke.load.
---@param path string
---@return {path: string, kind: "file"|"set", files: table<string, integer>, bytes: integer, header_bytes: integer, has_tree: boolean, metadata: table<string, string>, tensors: table<string, {dtype: string, shape: integer[], bytes: integer, offset: integer, file: string?}>}? info, yoke.Error? why
function yoke.load_info(path) end

---@class yoke.CheckpointManager
---@field folder string
---@field keep integer
local CheckpointManager = {}

---Saves a state as a step, in place of one of that number; then the oldest steps go. The state is that of this moment,
---also where it is written later: work:wait() ends when the step is there. nil and an error where the system refuses,
---or another process writes to the folder; raises for what cannot be saved, with its place.
---@param step integer
---@param state any
---@param options? {metadata: table<string, string>?, blocking: boolean?}
---@return yoke.Work? work, yoke.Error? why
function CheckpointManager:save(step, state, options) end

---The newest step; nil where there is none; nil and an error where the system refuses.
---@return integer? step, yoke.Error? why
function CheckpointManager:latest() end

---All steps in the order in which they were saved: the newest is the last.
---@return integer[]? steps, yoke.Error? why
function CheckpointManager:steps() end

---The state of a step; without one, of the newest that is whole, with a warning where others are damaged; nil and an
---error where there is none. `into` says what goes on from it, {net = net, optimizer = optimizer}: each takes what was
---saved under its name, and what does not fit is an error that lists all of it, with nothing changed. verify = false
---does not read the files to see whether they have their hashes.
---@param options? {step: integer?, into: table<string, any>?, device: yoke.Device|string|integer|nil, verify: boolean?}
---@return any state, yoke.Error? why
function CheckpointManager:load(options) end

---Lets the folder go, for another writer.
function CheckpointManager:close() end

---Keeps the newest states of a run in a folder, which the first save makes. folder/step-N has state.safetensors and
---MANIFEST.json with the hash of each file, and comes to its name last, when all of it is on the disk.
---@param folder string
---@param options? {keep: integer?}
---@return yoke.CheckpointManager manager
function yoke.CheckpointManager(folder, options) end

---Runs fn in yoke.poll() once a signal has asked the process to end, and then gives the signal to who had it before:
---TERM by default ends the process with the status of its signal, one that is ignored is ignored, a handler of the host
---gets it. work:wait() and waits of device() and select() poll as well; another call ends first. Of several
---registrations, of other states and the host too, all run, the newest of a state first, and the last gives the signal
---on. The same signal counts once until then, and other ones wait. Where the process goes on, so does the registration.
---
---What fn raises comes out of the poll in place of the former effect; this registration is at an end then. A state that
---is closed drops its own. A forked child has none.
---
---`signals` are "TERM" or "SIGTERM", INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP and PWR. One that is ignored, as HUP
---under nohup, runs fn all the same.
---@param fn fun()
---@param options? {signals: string|string[]?} TERM if not given
---@return yoke.Preemption handle
function yoke.on_preempt(fn, options) end

---@class yoke.Preemption
local Preemption = {}

---fn no longer runs. Where nobody else watches, the former handlers come back. A <close> variable does the same.
function Preemption:remove() end

---Until release() a signal waits, wherever a call polls: fn does not run, and the former effect does not come.
function Preemption:hold() end

---The next poll runs fn where a signal came meanwhile.
function Preemption:release() end
