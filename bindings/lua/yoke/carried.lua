-- Objects whose states ranks hand each other: optimizers, scalers, schedules, averages, samplers.
local core = require "yoke.core"
local options = require "yoke.options"
local tree = require "yoke.tree"

local carried = {}

--- Returns whether an object has a method of this name.
function carried.has(object, name)
    local found, method = pcall(function() return object[name] end)
    return found and type(method) == "function"
end

--- The list; raises for what has no state.
function carried.checked(objects, call)
    if type(objects) ~= "table" then
        core.raise("type", call, ("argument 'objects' is %s; it takes a list"):format(options.shown(objects)))
    end
    for i, each in ipairs(objects) do
        if not (carried.has(each, "state_dict") and carried.has(each, "load_state_dict")) then
            core.raise("type", call, ("object %d is %s; it must have the methods state_dict and load_state_dict, such as an optimizer"):format(
                i, options.shown(each)))
        end
    end
    return objects
end

--- Returns fn()'s results; an error of fn ends the group.
function carried.guarded(group, fn)
    local is_fine, result = pcall(fn)
    if is_fine then return true, result end
    group:abort((tostring(result):gsub("\0", "\\0")))
    error(result, 0)
end

--- Nil of none.
function carried.states(objects, call)
    if #objects > 0 then return tree.of(tree.list { table.unpack(objects) }, call, "objects") end
end

--- Returns the states in `told`, a node or false: a state for each object.
function carried.told(objects, told, call)
    local states = told and tree.value(told) or {}
    if #states ~= #objects then
        core.raise("value", call, ("this rank gives %d objects, but the rank whose states are loaded gives %d; give the same objects on all ranks"):format(
            #objects, #states))
    end
    return states
end

function carried.load(objects, states)
    for i, each in ipairs(objects) do each:load_state_dict(states[i]) end
end

return carried
