--- yoke.comm: groups of ranks that work together, and their collectives.
---
---     local group = assert(yoke.comm.init())                  -- torchrun, mpirun, srun, … tell which rank this is
---     assert(group:all_reduce(gradient, "avg"))
---     local work = assert(group:all_gather(out, part, {async_op = true}))
---
--- All ranks of a group make the same calls in the same order. If calls differ, or a rank has died or does not arrive
--- in time, every rank gets nil and the same error with the culprit. Such a group stays failed; init makes another.
local carried = require "yoke.carried"
local core = require "yoke.core"
local options = require "yoke.options"
local tree = require "yoke.tree"

core._comm_tell_lines() -- reports lines of the script, not of this file

local REDUCTIONS = { sum = 0, prod = 1, min = 2, max = 3, avg = 4 }

local Group = {}
Group.__name = "yoke.comm.Group"

local function reduction(op, call)
    local number = REDUCTIONS[op]
    if not number then
        core.raise("value", call, ("argument 'op' is %s; it must be 'sum', 'avg', 'prod', 'min' or 'max'"):format(options.shown(op)))
    end
    return number
end

-- Returns the argument 'op' and the options. A trailing table of options may stand in the place of 'op'.
local function op_of(call, op, given)
    if given == nil and type(op) == "table" then op, given = nil, op end
    if type(given) == "table" and given.op ~= nil then
        core.raise("value", call, "'op' is not an option; give 'sum', 'avg', 'prod', 'min' or 'max' as an argument before the options")
    end
    return op == nil and "sum" or op, given
end

local function rank_of(rank, call, argument)
    if math.type(rank) ~= "integer" or rank < 0 or rank > 0x7fffffff then
        core.raise("value", call, ("argument '%s' is %s; it takes a rank, a whole number from 0"):format(argument, options.shown(rank)))
    end
    return rank
end

local function run(self, call, given, t, out, op, peer)
    local named = options.named(call, given, { async_op = false })
    return self.handle:run(call, named.async_op, t, out, op, peer)
end

--- `t` of all ranks, reduced by "sum" (if nothing is given), "avg", "prod", "min" or "max", is in `t` of each.
--- {reduce_dtype = "float32"} has NCCL too add up 16-bit floats in float32.
function Group:all_reduce(t, op, given)
    op, given = op_of("all_reduce", op, given)
    local named = options.named("all_reduce", given, { async_op = false, reduce_dtype = options.none })
    return self.handle:run("all_reduce", named.async_op, t, nil, reduction(op, "all_reduce"), nil, named.reduce_dtype or nil)
end

--- Reduces to `t` of rank `root` alone.
function Group:reduce(t, root, op, given)
    op, given = op_of("reduce", op, given)
    return run(self, "reduce", given, t, nil, reduction(op, "reduce"), rank_of(root, "reduce", "root"))
end

--- `t` of rank `root` is in `t` of each.
function Group:broadcast(t, root, given) return run(self, "broadcast", given, t, nil, nil, rank_of(root, "broadcast", "root")) end

--- Fills `out` with `t` of all ranks in their order; `out` has `size` times the elements of `t`.
function Group:all_gather(out, t, given) return run(self, "all_gather", given, t, out) end

--- Fills `out` of rank `root` with `t` of all ranks; `out` is nil on the other ranks.
function Group:gather(out, t, root, given) return run(self, "gather", given, t, out, nil, rank_of(root, "gather", "root")) end

--- `out` is this rank's part of `t` of rank `root`; `t` is nil on the others.
function Group:scatter(out, t, root, given) return run(self, "scatter", given, t, out, nil, rank_of(root, "scatter", "root")) end

--- `out` is this rank's part of `t` of all ranks, reduced.
function Group:reduce_scatter(out, t, op, given)
    op, given = op_of("reduce_scatter", op, given)
    return run(self, "reduce_scatter", given, t, out, reduction(op, "reduce_scatter"))
end

--- Part i of `out` is this rank's part of rank i's `t`.
function Group:all_to_all(out, t, given) return run(self, "all_to_all", given, t, out) end

--- Sends `t` to rank `dst`, which calls recv.
function Group:send(t, dst, given) return run(self, "send", given, t, nil, nil, rank_of(dst, "send", "dst")) end

--- Receives into `t` what rank `src` sends.
function Group:recv(t, src, given) return run(self, "recv", given, t, nil, nil, rank_of(src, "recv", "src")) end

--- No rank goes on before all have called it.
function Group:barrier(given) return run(self, "barrier", given) end

--- Waits as barrier does, at most `timeout` seconds. The error lists all ranks that did not arrive, and the group
--- goes on.
function Group:monitored_barrier(timeout) return self.handle:monitored_barrier(timeout) end

--- Makes a tensor in memory that peers reach without a copy, in host memory if `device` is nil; all ranks make the
--- same call. `shape` is a list of sizes or a number. On a GPU the memory is NCCL's if NCCL serves the group.
function Group:empty(shape, dtype, device)
    if shape == nil then core.raise("type", "empty", "argument 'shape' is nil; it takes a list of sizes or one number") end
    return self.handle:empty(type(shape) == "table" and shape or { shape }, dtype, device)
end

-- Reports a call's error to the ranks waiting for the call.
local function finished(self, name, is_fine, ...)
    if is_fine then return ... end
    local problem = ...
    local has_text, text = pcall(function() return problem.message end) -- excludes errors of a hook during a wait
    if has_text and text then pcall(self.handle.note_refused, self.handle, name, text) end
    error(problem, 0)
end

--- Encloses the loops of ranks with different numbers of batches, as fn. If fn returns on a rank, the rank answers the
--- other ranks' backward passes with weight 0 until fn has returned on all ranks. Then all ranks take the parameters,
--- buffers and gradients of a rank that finished last. They also take the states of its `objects`, a list such as
--- {optimizer}, because these have made more steps. Returns true, or nil and an error. Each rank calls join; else each
--- backward raises on all ranks. Raises if no rank had a backward. An error of fn ends the group, on all ranks with its
--- reason.
function Group:join(fn, objects)
    if type(fn) ~= "function" then
        core.raise("type", "join", ("argument 'fn' is %s; it takes a function"):format(options.shown(fn)))
    end
    objects = finished(self, "join", pcall(carried.checked, objects or {}, "join"))
    self.handle:join_begin()
    local is_fine, mine = carried.guarded(self, function()
        fn()
        return carried.states(objects, "join")
    end)
    local told, problem = self.handle:join_end(mine)
    if told == nil then return nil, problem end
    carried.guarded(self, function() carried.load(objects, carried.told(objects, told, "join")) end)
    return is_fine
end

--- Ends the group on all ranks: running and later calls fail as "cancelled".
function Group:abort(reason) self.handle:abort(reason) end

--- Writes this rank's knowledge of the group to a file, for hang and `yoke hang`: its ranks, the last 2,000 calls
--- with lines of the script, the reason of a failure. A failed group may be dumped too. True, or nil and an error.
function Group:dump(path) return self.handle:dump(path) end

--- Releases the group after the begun calls are done; any later use is an error.
function Group:close() self.handle:close() end
Group.__close = Group.close

local ABOUT = { rank = 1, size = 2, local_rank = 3 }

function Group.__index(self, name)
    if ABOUT[name] then return (select(ABOUT[name], self.handle:about())) end
    return Group[name]
end

function Group.__tostring(self) return "yoke.comm.Group: " .. select(4, self.handle:about()) end

local function made(handle, problem)
    if not handle then return nil, problem end
    return setmetatable({ handle = handle }, Group)
end

--- Makes groups of the ranks with the same color, in the order of their keys; all ranks call it. False for a negative
--- color; nil and an error on failure.
function Group:split(color, key)
    local handle, problem = self.handle:split(color, key == nil and 0 or key)
    if handle == false then return false end
    return made(handle, problem)
end

--- Makes a new group of the ranks that call within `timeout` seconds (5), in their order; this group ends. The state
--- of the other ranks has no influence. A rank that calls after the new group was made gets nil and an error.
function Group:shrink(timeout) return made(self.handle:shrink(timeout == nil and 5.0 or timeout)) end

for _, name in ipairs { "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "send",
    "recv", "barrier", "monitored_barrier", "split", "shrink", "empty" } do
    local call = Group[name]
    Group[name] = function(self, ...) return finished(self, name, pcall(call, self, ...)) end
end
options.check_self(Group, "group")

local comm = {}

local OK, LATE, FAILED = 0, 1, 2

-- Returns init's calls of a script's store, as two functions that do not raise.
local function asked(store)
    for _, name in ipairs { "set", "get" } do
        local is_fine, method = pcall(function() return store[name] end)
        if not is_fine or method == nil then
            core.raise("type", "init", ("option 'store' is %s, which does not have the method %s; give an object with set(self, key, value) and get(self, key, timeout)")
                :format(options.shown(store), name))
        end
    end
    local function set(key, value)
        local is_fine, done, problem = pcall(store.set, store, key, value)
        if not is_fine then return FAILED, tostring(done) end
        if problem ~= nil then return FAILED, tostring(problem) end
        return OK, ""
    end
    local function get(key, timeout)
        local is_fine, value, problem = pcall(store.get, store, key, timeout)
        if not is_fine then return FAILED, tostring(value) end
        if problem ~= nil then return FAILED, tostring(problem) end
        if value == nil then return LATE, "no rank set the key in time" end
        if type(value) ~= "string" then return FAILED, "get() returned " .. options.shown(value) .. "; it must be a string" end
        return OK, value
    end
    return set, get
end

--- Makes the group of all ranks; each rank calls it. {backend =, init_method = "env://", rank =, world_size =,
--- timeout = 600, init_timeout = 300, store =, device =}. `backend` nil: the CPU engine, and NCCL for tensors of
--- GPUs if NCCL can serve all ranks; else these tensors pass through host memory, and a warning says why. "nccl": an
--- error if NCCL cannot serve. "cpu" (also called "gloo") or "mpi": for all tensors. NCCL's communicator is made at
--- the first collective with a tensor of a GPU, on this GPU; with `device`, on all ranks, at once. Nil and an error
--- if a rank does not arrive or has failed. `store` replaces rank 0's address: an object with set(self, key, value)
--- and get(self, key, timeout); get returns nil, or waits, until the key is there. Only init calls the store. If the
--- store returns nil and a text, or raises an error, init fails.
function comm.init(given)
    local named = options.named("init", given, { backend = options.none, init_method = "env://", rank = options.none,
        world_size = options.none, timeout = 600.0, init_timeout = 300.0, store = options.none, device = options.none })
    local set, get
    if named.store ~= nil then set, get = asked(named.store) end
    return made(core._comm_init(named.backend, named.init_method, named.rank, named.world_size, named.timeout,
        named.init_timeout, set, get, named.device or nil))
end

--- Makes groups of one process; each group is the rank of a device: init_all({"cuda:0", "cuda:1"}), with {timeout =
--- 600}. Their calls stand in a coalesce. Nil and an error on failure.
function comm.init_all(devices, given)
    if type(devices) ~= "table" then
        core.raise("type", "init_all", ("argument 'devices' is %s; it takes a list of devices"):format(options.shown(devices)))
    end
    local named = options.named("init_all", given, { timeout = 600.0 })
    local handles, problem = core._comm_init_devices(devices, named.timeout)
    if not handles then return nil, problem end
    local groups = {}
    for rank, handle in ipairs(handles) do groups[rank] = made(handle) end
    return groups
end

local scopes = 0 -- open calls of coalesce

--- Issues the collectives called by `fn` together when fn returns: no send or receive among them waits for another,
--- so two ranks may send to each other. The calls return at once, and their tensors are written when coalesce
--- returns: true, or nil and an error. Calls with other results (split, empty, measure_shares or a backward of data
--- parallel) raise inside. An error of fn drops the calls, also the calls of an outer coalesce. fn must not yield:
--- the thread would go on within it.
function comm.coalesce(fn)
    if type(fn) ~= "function" then
        core.raise("type", "coalesce", ("argument 'fn' is %s; it takes a function"):format(options.shown(fn)))
    end
    local inner = coroutine.create(fn)
    core._comm_coalesce("begin")
    scopes = scopes + 1
    local is_fine, problem = coroutine.resume(inner)
    scopes = scopes - 1
    local has_yielded = coroutine.status(inner) == "suspended"
    if is_fine and not has_yielded then return core._comm_coalesce("end") end
    core._comm_coalesce("drop")
    coroutine.close(inner)
    if has_yielded then
        core.raise("state", "coalesce", "argument 'fn' has yielded; it must not yield inside coalesce, only before or after")
    end
    error(problem, 0)
end

--- Measures each rank's share of the work, with the sum 1, so that all ranks need the same time. step() does the same
--- work on each rank and calls no group, since each rank would then wait for the slowest: it steps the plain module.
--- step() is called four times; the first call does not count, and the quickest counts. For DistributedSampler,
--- batches of a size by share, and set_weight. All ranks call it. An error of step() ends the group, on all ranks
--- with its reason.
function comm.measure_shares(step, group)
    if type(step) ~= "function" then
        core.raise("type", "measure_shares", ("argument 'step' is %s; it takes a function"):format(options.shown(step)))
    end
    if type(group) ~= "table" or not group.handle then
        core.raise("type", "measure_shares", ("argument 'group' is %s; it takes a group"):format(options.shown(group)))
    end
    if scopes > 0 then
        core.raise("state", "measure_shares", "this call needs the other ranks at once, but this thread is in a coalesce, which issues its calls at its end; call it before or after the coalesce")
    end
    carried.guarded(group, step)
    local done, problem = group:barrier() -- an early rank would have the processors alone
    if not done then return nil, problem end
    local least = math.huge
    for _ = 1, 3 do
        local began = core.clock()
        carried.guarded(group, step)
        least = math.min(least, core.clock() - began)
    end
    local speed <close> = core.tensor({ 1 / math.max(least, 1e-9) }, "float64")
    local all <close> = core.zeros({ group.size }, { dtype = "float64" })
    done, problem = group:all_gather(all, speed)
    if not done then return nil, problem end
    local shares, sum = all:tolist(), 0
    for _, each in ipairs(shares) do sum = sum + each end
    for i, each in ipairs(shares) do shares[i] = each / sum end
    return shares
end

--- Finds the ranks that block groups, from dumps of some or all ranks: files, or folders of files "*.json". {hangs =,
--- groups = {{group =, size =, hangs =, blamed = {rank}, finished =, findings = {{kind =, ranks =, text =}}, ranks =,
--- older =}}, problems = {{path =, text =}}}; nil and an error if no file is a dump.
function comm.hang(...)
    local node, problem = core._comm_hang { ... }
    if not node then return nil, problem end
    return tree.value(node)
end

--- Lists the variables NCCL_*, GLOO_* and TORCH_NCCL_* of the environment, by their names, with their effect here:
--- tables with `name`, `value`, `effect` ("sets", "overruled", "always", "passed", "nothing", "unknown" or
--- "unreadable"), `setting`, decided by the variable, "YOKE_COMM_SHM=0", and `text`, for people.
function comm.env() return core._comm_env() end

--- Releases the default group. At its end a process releases it automatically.
function comm.finalize() core._comm_finalize() end

return comm
