---@meta yoke
-- For editors (LuaLS): groups of ranks. A method returns true or a work; nil and an error where the group has failed.

---@class yoke
local yoke = {}

---@class yoke.Store
---@field set fun(self, key: string, value: string)
---@field get fun(self, key: string, timeout: number): string?

---@class yoke.comm
local comm = {}

---Makes the group of all ranks; each rank calls it. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (torchrun,
---Kubeflow), mpirun, srun or an indexed Job give this rank's number; or init_method with rank and world_size.
---backend is "cpu", "nccl" or "mpi"; nil is the CPU engine, and NCCL for tensors of GPUs if it can serve all
---ranks. A store, called only by init, replaces rank 0's address: get returns nil, or waits, until the key is there.
---@param options? {backend: string?, init_method: string?, rank: integer?, world_size: integer?, timeout: number?, init_timeout: number?, store: yoke.Store?, device: (yoke.Device|string)?}
---@return yoke.Group? group
---@return yoke.Error? error
function comm.init(options) end

---Makes groups of one process; each group is the rank of a device. Their calls stand in a coalesce.
---@param devices (yoke.Device|string)[]
---@param options? {timeout: number?}
---@return yoke.Group[]? groups
---@return yoke.Error? error
function comm.init_all(devices, options) end

---Releases the default group. At its end a process releases it automatically.
function comm.finalize() end

---Finds the ranks that block groups, from dumps of some or all ranks: files, or folders of files "*.json".
---@param ... string
---@return table? report
---@return yoke.Error? error
function comm.hang(...) end

---@class yoke.Variable
---@field name string
---@field value string
---@field effect "sets" | "overruled" | "always" | "passed" | "nothing" | "unknown" | "unreadable"
---@field setting string of Yoke's, "YOKE_COMM_SHM=0", or ""
---@field text string for people

---The variables NCCL_*, GLOO_* and TORCH_NCCL_* of the environment, and what each does here.
---@return yoke.Variable[]
function comm.env() end

---Issues the collectives called by fn together when fn returns. fn must not yield.
---@param fn fun()
---@return true? done
---@return yoke.Error? error
function comm.coalesce(fn) end

---Returns the share of the work that each rank should have, 1 in all, by the time of step() on each; all ranks call it.
---@param step function
---@param group yoke.Group
---@return number[]? shares
---@return yoke.Error? error
function comm.measure_shares(step, group) end

---@class yoke.Group
---@field rank integer from 0 on
---@field size integer
---@field local_rank integer among those on its host
local Group = {}

---@alias yoke.Async {async_op: boolean?}

---`op` is "sum", "avg", "prod", "min" or "max".
---@param t yoke.Tensor
---@param op? string
---@param options? {async_op: boolean?, reduce_dtype: string?}
function Group:all_reduce(t, op, options) end

---@param t yoke.Tensor
---@param root integer
---@param op? string
---@param options? yoke.Async
function Group:reduce(t, root, op, options) end

---@param t yoke.Tensor
---@param root integer
---@param options? yoke.Async
function Group:broadcast(t, root, options) end

---@param out yoke.Tensor
---@param t yoke.Tensor
---@param options? yoke.Async
function Group:all_gather(out, t, options) end

---@param out yoke.Tensor? nil but at the root
---@param t yoke.Tensor
---@param root integer
---@param options? yoke.Async
function Group:gather(out, t, root, options) end

---@param out yoke.Tensor
---@param t yoke.Tensor? nil but at the root
---@param root integer
---@param options? yoke.Async
function Group:scatter(out, t, root, options) end

---@param out yoke.Tensor
---@param t yoke.Tensor
---@param op? string
---@param options? yoke.Async
function Group:reduce_scatter(out, t, op, options) end

---@param out yoke.Tensor
---@param t yoke.Tensor
---@param options? yoke.Async
function Group:all_to_all(out, t, options) end

---@param t yoke.Tensor
---@param dst integer
---@param options? yoke.Async
function Group:send(t, dst, options) end

---@param t yoke.Tensor
---@param src integer
---@param options? yoke.Async
function Group:recv(t, src, options) end

---@param options? yoke.Async
function Group:barrier(options) end

---The error lists all ranks that did not come within so many seconds; the group goes on.
---@param timeout number
function Group:monitored_barrier(timeout) end

---Splits the group by color. False for a negative color: the rank is in no new group.
---@param color integer
---@param key? integer
---@return yoke.Group|false|nil group
---@return yoke.Error? error
function Group:split(color, key) end

---Makes a new group of the ranks that call in time; this group ends.
---@param timeout? number
---@return yoke.Group? group
---@return yoke.Error? error
function Group:shrink(timeout) end

---Makes a tensor in memory that peers reach without a copy, in host memory if device is nil; all ranks make the same
---call.
---@param shape integer|integer[]
---@param dtype? string
---@param device? yoke.Device|string
function Group:empty(shape, dtype, device) end

---Writes what this rank knows of the group to a file, for yoke.comm.hang and `yoke hang`.
---@param path string
---@return true? done
---@return yoke.Error? error
function Group:dump(path) end

---Encloses the loops of ranks with different numbers of batches: a finished rank answers the other ranks until all
---have finished. Then all have the states of the objects of a rank that finished last.
---@param fn function
---@param objects? table[]
---@return true? done
---@return yoke.Error? error
function Group:join(fn, objects) end

---Ends the group on all ranks.
---@param reason? string
function Group:abort(reason) end

function Group:close() end

---Model on all ranks of a group, with the mean of all ranks in its gradients after each backward.
---@class yoke.DistributedDataParallel: yoke.nn.Module
---@field module yoke.nn.Module
local Parallel = {}

---Within fn(...) backward adds up on this rank alone; the next one outside reduces the sum.
---@param fn function
---@param ... any
---@return any ...
function Parallel:no_sync(fn, ...) end

---Sets how much this rank counts from the next backward on.
---@param n number
function Parallel:set_weight(n) end

---Goes on in another group, as of Group:shrink, from the rank that is furthest; so do the objects' states.
---@param group yoke.Group
---@param objects? table[]
function Parallel:regroup(group, objects) end

---@return {steps: integer, tensors: table<string, yoke.Tensor>}
function Parallel:comm_state() end

---@param state {steps: integer, tensors: table<string, yoke.Tensor>}
function Parallel:load_comm_state(state) end

function Parallel:close() end

---Runs fn(table.unpack(args)) in n new processes, the ranks of one job, and returns when all have ended. fn uses no
---locals from outside; args are nil, booleans, numbers, strings and tables of these.
---@param fn function
---@param n integer
---@param args? table
---@return true? fine
---@return yoke.Error? error where a rank failed: it names the rank, with its traceback
function yoke.spawn(fn, n, args) end
