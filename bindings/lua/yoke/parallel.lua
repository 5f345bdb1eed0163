--- yoke.DistributedDataParallel: a model on all ranks of a group, whose gradients are reduced while backward runs.
---
---     local ddp = yoke.DistributedDataParallel(net, { group = group })
---     ddp(x):sum():backward()                 -- the mean over all ranks is in the gradients
---
--- All ranks make the same call. If values differ, all ranks take rank 0's values, and rank 0's buffers after each
--- backward. A parameter used on some ranks counts as 0 on the other ranks; a parameter used on no rank keeps no
--- gradient. A backward from results of module(...), also in plain tables, is a backward of all ranks, even if a rank
--- used no parameter at all. If no result requires a gradient, its floating tensors do from then on. If a rank's
--- backward fails, the group ends on all ranks with its reason; the module then goes on alone. To wrap the module
--- anew call ddp:close() first. While the old wrapper lives, a new wrapper in its group raises, also if it would take
--- the old wrapper's name.
local carried = require "yoke.carried"
local core = require "yoke.core"
local base = require "yoke.nn.module"
local options = require "yoke.options"
local own_card = require "yoke.own_card"
local tree = require "yoke.tree"

local NAME, PREFIX = "DistributedDataParallel", "module."

local Parallel = base.Module:extend(NAME)

local function handle_of(group, call, kind)
    local handle = type(group) == "table" and group.handle
    if not handle then
        core.raise("type", call, ("%s 'group' is %s; it takes a group, of yoke.comm.init"):format(kind, options.shown(group)))
    end
    return handle
end

-- Returns the results of a call. If the call raised, notes the reason for the other ranks, because they wait for this
-- rank's wrapping, backward or regroup.
local function finished(handle, name, is_fine, ...)
    if is_fine then return ... end
    local has_text, text = pcall(function(problem) return problem.message end, (...))
    if has_text and text then pcall(function() handle:note_refused(name, text) end) end
    error((...), 0)
end

-- Names and tensors.
local function listed(iterator)
    local names, tensors = {}, {}
    for name, tensor in iterator do names[#names + 1], tensors[#tensors + 1] = name, tensor end
    return names, tensors
end

--- {group =, bucket_mb = 25, compression =}: MiB of gradients reduced together; "fp16" or "bf16" send 16-bit floats,
--- "powersgd:rank=4,start=10,rate=2" sends matrices as thin products. device_ids = {d}: d is the card of all
--- parameters, a device, an index or a text, and tensors in the arguments of module(...) are copied there; without it
--- they are passed unchanged. output_device is the same card. reduce_dtype = "float32": NCCL adds up 16-bit gradients
--- in float32, as the CPU engine does.
function Parallel:init(module, given)
    if not base.is_module(module) then
        core.raise("type", NAME, ("argument 'module' is %s; it takes a module of yoke.nn"):format(options.shown(module)))
    end
    local named = options.named(NAME, given, { group = options.none, bucket_mb = 25, compression = options.none,
        device_ids = options.none, output_device = options.none, reduce_dtype = options.none })
    local handle = handle_of(named.group, NAME, "option")
    self.module = module
    local names, params = listed(module:named_parameters())
    rawset(self, "card", finished(handle, NAME, pcall(own_card.of, NAME, named.device_ids, named.output_device, params)))
    local buffer_names, buffers = listed(module:named_buffers())
    local compression = named.compression or nil
    local known, trained, broadcast = {}, {}, {}
    local places = {}
    for i, name in ipairs(names) do
        known[name], trained[i], places[i] = true, params[i].requires_grad, params[i].dtype .. " on " .. tostring(params[i].device)
    end
    for i, name in ipairs(buffer_names) do broadcast[name] = buffers[i] end
    rawset(self, "broadcast", broadcast)
    rawset(self, "group", named.group)
    rawset(self, "size", named.group.size) -- the script may close the group
    rawset(self, "known", known)
    rawset(self, "names", names)
    rawset(self, "trained", trained)
    rawset(self, "places", places)
    rawset(self, "wrapped", params)
    rawset(self, "reducer", core._reducer(handle, params, names, buffers, buffer_names, named.bucket_mb, compression,
        named.reduce_dtype or nil))
end

-- Tensors as keys.
local function set_of(tensors)
    local set = {}
    for _, each in pairs(tensors) do set[each] = true end
    return set
end

local function change_of_parameters(self)
    local names, params = listed(self.module:named_parameters())
    local was, is = set_of(self.wrapped), set_of(params)
    for i, each in ipairs(params) do
        if not was[each] then
            local what = self.known[names[i]] and "was moved, or another parameter has its name" or "was added"
            return ("the parameter '%s' %s"):format(names[i], what)
        end
    end
    for i, each in ipairs(self.wrapped) do
        if not is[each] then return ("the parameter '%s' was removed"):format(self.names[i]) end
        if each.requires_grad ~= self.trained[i] then
            local what = self.trained[i] and "frozen" or "frozen, and requires a gradient now"
            return ("the parameter '%s' was %s"):format(self.names[i], what)
        end
        if each.dtype .. " on " .. tostring(each.device) ~= self.places[i] then
            return ("the parameter '%s' was moved to another dtype or device"):format(self.names[i])
        end
    end
end

local function change_of_buffers(self)
    local now = {}
    for name, each in self.module:named_buffers() do now[name] = each end
    for name, each in pairs(self.broadcast) do
        if not now[name] then return ("the buffer '%s' was removed"):format(name) end
        if not rawequal(now[name], each) then
            return ("the buffer '%s' is another tensor than when it was wrapped; write into it in place, buf:copy_(...)"):format(name)
        end
    end
    for name in pairs(now) do
        if not self.broadcast[name] then return ("the buffer '%s' was added"):format(name) end
    end
end

local function check_module(self)
    if self.size == 1 then return end -- no reduction
    local change = change_of_parameters(self) or change_of_buffers(self)
    if not change then return end
    local text = ("the module has changed since it was wrapped: %s; wrap the module again on all ranks"):format(change)
    pcall(self.group.abort, self.group, NAME .. ": " .. text) -- may be closed
    core.raise("state", NAME, text)
end

-- Returns the open tensors in values, each once, also from nested plain tables, and the tables that hold each found
-- tensor.
local function find(values)
    local found, holders, waiting = {}, {}, {}
    local function meet(value, holder)
        local kind = type(value)
        if kind ~= "table" and kind ~= "userdata" then return end
        local known = holders[value]
        if known then
            known[#known + 1] = holder
        elseif core.is_tensor(value) then
            holders[value] = { holder }
            if not value:is_closed() then found[#found + 1] = value end
        elseif kind == "table" and not getmetatable(value) then
            holders[value] = { holder }
            waiting[#waiting + 1] = value
        end
    end
    for i = 1, values.n do meet(values[i]) end
    while #waiting > 0 do
        local holder = table.remove(waiting)
        for _, each in next, holder do meet(each, holder) end
    end
    return found, holders
end

-- Puts copies of the tables into `by` that hold a replaced tensor (by[each] for each), or a replaced table.
local function copy_holders(by, holders)
    local waiting, copied = {}, {}
    for each in pairs(by) do waiting[#waiting + 1] = each end
    while #waiting > 0 do
        for _, holder in ipairs(holders[table.remove(waiting)]) do
            if not by[holder] then
                by[holder] = {}
                waiting[#waiting + 1], copied[#copied + 1] = holder, holder
            end
        end
    end
    for _, each in ipairs(copied) do
        for key, value in next, each do by[each][key] = by[value] or value end
    end
end

-- Returns the given values, with the tensors of `by` in place of the originals.
local function replaced(by, given, holders)
    if next(by) ~= nil then
        copy_holders(by, holders)
        for i = 1, given.n do given[i] = by[given[i]] or given[i] end
    end
    return table.unpack(given, 1, given.n)
end

-- Ties outputs to the reducer: a backward from them is a backward of all ranks, even if it reaches no parameter.
local function tied(self, forward, ...)
    if self.size == 1 or not core.is_grad_enabled() then return ... end
    local by, given = {}, table.pack(...)
    local found, holders = find(given)
    if #found == 0 then return ... end
    for i, each in ipairs(self.reducer:tie(found, forward)) do
        if each then by[found[i]] = each end
    end
    return replaced(by, given, holders)
end

-- Returns the module's arguments, with tensors on the rank's card if a card was named.
local function brought(self, ...)
    local card = rawget(self, "card")
    if not card then return ... end
    local by, given, there = {}, table.pack(...), tostring(card)
    local found, holders = find(given)
    for _, each in ipairs(found) do
        if tostring(each.device) ~= there then by[each] = each:to(card) end
    end
    return replaced(by, given, holders)
end

-- The module itself may assign parameters that backward would not reduce.
local function checked(self, forward, ...)
    if core.is_grad_enabled() then check_module(self) end
    local given = table.pack(tied(self, forward, ...))
    self.reducer:check() -- after a failure, later records give gradients of this rank only
    return table.unpack(given, 1, given.n)
end

--- Returns the results of module(...).
function Parallel:forward(...)
    local forward = self.reducer:check()
    if core.is_grad_enabled() then check_module(self) end
    return checked(self, forward, self.module(brought(self, ...)))
end

--- Within fn(...) backward adds up on this rank alone; the next backward outside reduces the sum. Returns fn's
--- results.
function Parallel:no_sync(fn, ...)
    local before = self.reducer:sync()
    self.reducer:sync(false)
    local results = table.pack(pcall(fn, ...))
    self.reducer:sync(before)
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
end

--- Sets how much this rank counts from the next backward on: gradients are the sum of n times gradient, by the sum of
--- n.
function Parallel:set_weight(n) finished(self.group.handle, "set_weight", pcall(self.reducer.set_weight, self.reducer, n)) end

--- Moves the module to the ranks of `group`, such as a group of group:shrink(); all its ranks call it:
--- ddp:regroup(group, {optimizer, scaler, sampler}). If the ranks have stopped at different steps, all take
--- parameters, buffers, the compression's state and the objects' states from the furthest rank. Gradients are
--- removed: run the failed step again. A DistributedSampler deals the rest of its epoch among the present ranks. If
--- it raises, the module has its former values and goes on alone; another call with another group is allowed.
function Parallel:regroup(group, objects)
    local handle = finished(self.group.handle, "regroup", pcall(handle_of, group, "regroup", "argument")) -- there is no other group to notify
    objects = finished(handle, "regroup", pcall(carried.checked, objects or {}, "regroup"))
    local _, states = carried.guarded(group, function() return carried.states(objects, "regroup") end)
    local told = self.reducer:regroup(handle, states)
    carried.guarded(group, function()
        rawset(self, "group", group)
        rawset(self, "size", group.size)
        states = carried.told(objects, told, "regroup") -- before this rank waits in a sampler's call for ranks without a sampler
        for _, each in ipairs(objects) do
            if carried.has(each, "regroup") then each:regroup(group) end
        end
        carried.load(objects, states)
    end)
end

--- Returns the state of this rank's compression: {steps =, tensors =}.
function Parallel:comm_state() return tree.value(self.reducer:state()) end

--- Raises for the state of another model or compression, as comm_state does, too, while a backward runs.
function Parallel:load_comm_state(state)
    local is_fine, problem = pcall(function() self.reducer:load_state(tree.of(state, "load_comm_state", "state")) end)
    if is_fine then return end
    if problem.code == "state" then error(problem, 0) end -- a backward runs in another thread: the group is well
    finished(self.group.handle, "load_comm_state", false, problem)
end

--- Returns the state of the module, under its names.
function Parallel:state_dict() return self.module:state_dict() end

-- Returns `dict` without the prefix, if all its names have the prefix and fit `own` better without.
local function without_prefix(dict, own)
    local plain, gain = {}, 0
    for name, value in pairs(dict) do
        if type(name) ~= "string" or name:sub(1, #PREFIX) ~= PREFIX then return dict end
        local short = name:sub(#PREFIX + 1)
        plain[short] = value
        gain = gain + (own[short] and 1 or 0) - (own[name] and 1 or 0)
    end
    return gain > 0 and plain or dict
end

--- Names may have "module." in front, as PyTorch writes them, if names without the prefix fit better.
function Parallel:load_state_dict(dict, given)
    local fitting = type(dict) == "table" and without_prefix(dict, self.module:state_dict()) or dict
    return finished(self.group.handle, "load_state_dict", pcall(self.module.load_state_dict, self.module, fitting, given))
end

--- Gradients are this rank's own again; backward of what was recorded before raises, unless the group has failed.
function Parallel:close() self.reducer:close() end
options.check_self(Parallel, "ddp", base.is_module)

return Parallel
