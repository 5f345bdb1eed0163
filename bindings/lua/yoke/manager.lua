--- yoke.CheckpointManager: the newest states of a run in a folder, of which one is whole whenever the machine stops.
---
---     local manager = yoke.CheckpointManager("run", {keep = 3})
---     local latest, problem = manager:latest()
---     if problem then error(problem) end
---     if latest then state = assert(manager:load {into = {net = net, optimizer = optimizer}}) end
---     assert(manager:save(step, {net = net, optimizer = optimizer, epoch = epoch}))
local core = require "yoke.core"
local module = require "yoke.nn.module"
local options = require "yoke.options"
local tree = require "yoke.tree"

local CheckpointManager = {}
CheckpointManager.__index = CheckpointManager
CheckpointManager.__name = "yoke.CheckpointManager"

--- Saves a state as a step, in place of one of that number; then the oldest go. {metadata =, blocking = false}. Returns
--- the work, or nil and an error where the system refuses or another process writes to the folder.
function CheckpointManager:save(step, state, given)
    local named = options.named("save", given, { metadata = options.none, blocking = false })
    local node = tree.of(state, "save", "state")
    local about = named.metadata and tree.of(named.metadata, "save", "metadata")
    return self.handle:save(step, node, about, named.blocking)
end

--- The newest step; nil where there is none; nil and an error where the system refuses.
function CheckpointManager:latest() return self.handle:latest() end

--- Lists all steps in the order of their saves: the newest is the last.
function CheckpointManager:steps()
    local node, problem = self.handle:steps()
    if not node then return nil, problem end
    return setmetatable(tree.value(node), nil)
end

-- ---- Objects that continue from a state --------------------------------------------------------------------------

local function method(target, name)
    local kind = type(target)
    if kind ~= "table" and kind ~= "userdata" then return nil end
    local found, value = pcall(function() return target[name] end)
    return found and type(value) == "function" and value or nil
end

-- Returns a target's functions to get and set its state.
local function accessors(target)
    for _, names in ipairs { { "state_dict", "load_state_dict" }, { "get_state", "set_state" } } do
        local getter, setter = method(target, names[1]), method(target, names[2])
        if getter and setter then return getter, setter end
    end
end

local function check_into(into)
    if type(into) ~= "table" then
        core.raise("type", "load", ("option 'into' is %s; it must be a table of the objects that continue from the state"):format(options.shown(into)))
    end
    for name, target in pairs(into) do
        if not (core.is_tensor(target) or accessors(target)) then
            core.raise("type", "load", ("into['%s'] is %s; it must be a tensor or have load_state_dict()"):format(name,
                options.shown(target)))
        end
    end
end

-- Returns a target's tensors if the target has only tensors; nil if a function of the target takes the state.
local function tensors_of(target)
    if core.is_tensor(target) then return target end
    if method(target, "load_state_dict") == module.Module.load_state_dict then return tree.dict(target:state_dict()) end
end

-- Returns a state independent of later changes of its tensors.
local function kept(value)
    if core.is_tensor(value) then return value:detach():clone() end
    if type(value) ~= "table" or value == tree.none then return value end
    local copy = {}
    for key, each in pairs(value) do copy[key] = kept(each) end
    return setmetatable(copy, getmetatable(value))
end

local function former(target)
    local name = type(target) == "table" and (getmetatable(target) or {}).__name
    local state = accessors(target)(target)
    -- Optimizers of yoke.optim replace their tensors by copies, so the old tensors stay unchanged.
    return type(name) == "string" and name:find "^yoke%.optim%." and state or kept(state)
end

-- Hands the states to targets with their own check; misfits go to `wrong`.
local function hand_over(others, state, wrong, changed)
    for _, name in ipairs(others) do
        local target = others[name]
        if state[name] == nil then
            wrong[#wrong + 1] = ("'%s' is missing in the state"):format(name)
        else
            local _, setter = accessors(target)
            changed[#changed + 1] = { setter, target, former(target) }
            local fine, problem = pcall(setter, target, state[name])
            if not fine then
                local told, code = pcall(function() return problem.code end)
                if not told or code ~= "value" and code ~= "type" then error(problem, 0) end
                wrong[#wrong + 1] = ("'%s': %s"):format(name, problem.message)
            end
        end
    end
end

-- Loads all or nothing: tensors are compared first and copied last; if a target with its own check fails, the other
-- targets get their former states back.
local function take(node, state, into)
    if type(state) ~= "table" then
        core.raise("value", "load", ("option 'into' takes parts of a table, but the state is %s"):format(options.shown(state)))
    end
    local tensors, others, changed = tree.dict {}, {}, {}
    for name, target in pairs(into) do
        tensors[name] = tensors_of(target)
        if tensors[name] == nil then others[#others + 1], others[name] = name, target end
    end
    local places = tree.of(tensors, "load", "into")
    local wrong = tree.value(core._misfits(node, places))
    local fine, problem = pcall(function()
        hand_over(others, state, wrong, changed)
        if #wrong > 0 then
            core.raise("value", "load", "the state does not fit, and no tensor was changed:\n  " .. table.concat(wrong, "\n  "))
        end
        core._copy_into(node, places)
    end)
    if fine then return end
    -- A second failure, probably of the first failed target, does not keep other targets from their states.
    for i = #changed, 1, -1 do pcall(changed[i][1], changed[i][2], changed[i][3]) end
    error(problem, 0)
end

--- Loads the state of a step; without `step`, of the newest whole step, with a warning about damaged steps. Without
--- such a step, nil and an error; if there is no damaged step either, its native_code is 2, ENOENT. {step =, into =,
--- device =, verify = true}: `into` is a table of the objects that continue from the state, {net = net, optimizer =
--- optimizer}. Each takes the state saved under its name, all of them or none.
function CheckpointManager:load(given)
    local named = options.named("load", given,
        { step = options.none, into = options.none, device = options.none, verify = true })
    if named.into ~= nil then check_into(named.into) end
    local node, problem = self.handle:load(named.step, named.device, named.verify)
    if not node then return nil, problem end
    local state = tree.value(node)
    if named.into ~= nil then take(node, state, named.into) end
    return state
end

--- Releases the folder for another writer; any later use is an error.
function CheckpointManager:close() self.handle:close() end
CheckpointManager.__close = CheckpointManager.close
options.check_self(CheckpointManager, "manager")

return function(folder, given)
    local named = options.named("CheckpointManager", given, { keep = 3 })
    return setmetatable({ folder = folder, keep = named.keep, handle = core._checkpoint_manager(folder, named.keep) },
        CheckpointManager)
end
