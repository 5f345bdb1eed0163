--- Tables in a state, of files and of objects.
---
--- A table with the keys 1 to n is a list, any other table a dict of string and integer keys. An object with a method
--- state_dict stands for the method's result. Lua has no empty list, no tuple, no dict of 1 to n and no null value.
--- So load marks such values, and save writes them as they were; scripts may mark values too.
local core = require "yoke.core"
local options = require "yoke.options"

local tree = {}

--- Null value in a list or a dict.
tree.none = setmetatable({}, { __name = "yoke.none", __tostring = function() return "yoke.none" end })

local List, Tuple, Dict = { __name = "yoke.list" }, { __name = "yoke.tuple" }, { __name = "yoke.dict" }
local Shape = core.shape_class -- a list of integers, x.shape
local marks = { [List] = true, [Tuple] = true, [Dict] = true, [Shape] = true }

local function marked(call, mark, items)
    if type(items) ~= "table" or getmetatable(items) ~= nil and getmetatable(items) ~= Shape then
        core.raise("type", call, ("argument 'items' is %s; it takes a plain table"):format(options.shown(items)))
    end
    return setmetatable(items, mark)
end

--- The table as a list, also where it is empty: yoke.list{}.
function tree.list(items) return marked("list", List, items) end

--- The table as a dict, also where its keys are 1 to n: yoke.dict{"first", "second"}.
function tree.dict(items) return marked("dict", Dict, items) end

local deepest = 64

-- ---- Tables to trees ---------------------------------------------------------------------------------------------

local function has_state_dict(value)
    local kind = type(value)
    if kind ~= "table" and kind ~= "userdata" then return false end
    local found, method = pcall(function() return value.state_dict end)
    return found and type(method) == "function"
end

-- Integers, then strings, each in order: pairs() has none.
local function before(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == "number"
end

local function keys_of(value, call, path)
    local keys = {}
    for key in next, value do
        if type(key) ~= "string" and math.type(key) ~= "integer" then
            core.raise("type", call, ("%s has the key %s; keys of a state are strings and integers"):format(path,
                type(key) == "number" and tostring(key) or options.shown(key)))
        end
        keys[#keys + 1] = key
    end
    table.sort(keys, before)
    return keys
end

local function is_list(value, keys)
    local mark = getmetatable(value)
    if marks[mark] then return mark ~= Dict end
    return #keys > 0 and keys[1] == 1 and keys[#keys] == #keys
end

local function below(path, key)
    return ("%s[%s]"):format(path, type(key) == "string" and ("'%s'"):format(key) or key)
end

local read

local function refuse_depth(walk, path)
    core.raise("value", walk.call, ("%s: tables must be nested at most %d deep"):format(path, deepest))
end

local function read_table(value, walk, path)
    if #walk.open >= deepest then refuse_depth(walk, path) end
    if walk.inside[value] then
        core.raise("value", walk.call, path .. " contains itself; a state must be a tree")
    end
    walk.inside[value], walk.open[#walk.open + 1] = true, value
    local keys = keys_of(value, walk.call, path)
    local node
    if is_list(value, keys) then
        node = core.state_list(getmetatable(value) == Tuple)
        for i, key in ipairs(keys) do
            if key ~= i then
                core.raise("value", walk.call, ("%s is a list with the key %s; a list has only the keys 1 to n"):format(path,
                    options.shown(key)))
            end
            local child = read(value[key], walk, below(path, key))
            if not node:append(child) then refuse_depth(walk, below(path, key)) end
        end
    else
        node = core.state_dict()
        for _, key in ipairs(keys) do
            local child = read(value[key], walk, below(path, key))
            if not node:put(key, child) then
                if type(key) == "number" or utf8.len(key) then refuse_depth(walk, below(path, key)) end
                core.raise("value", walk.call, path .. " has a key that is not UTF-8")
            end
        end
    end
    walk.inside[value], walk.open[#walk.open] = nil, nil
    return node
end

-- Returns the state of an object.
local function state_of(object, walk, path)
    local state = object:state_dict()
    local mark = getmetatable(state)
    local is_plain = type(state) == "table" and (mark == nil or marks[mark]) and not has_state_dict(state)
    if core.is_tensor(state) or is_plain and not is_list(state, keys_of(state, walk.call, path)) then return state end
    core.raise("type", walk.call, ("%s has a state_dict() that returns %s; it must return a dict or a tensor"):format(path,
        is_plain and "a list" or options.shown(state)))
end

function read(value, walk, path)
    if value == tree.none then return core.state(nil) end
    if walk.known[value] then return walk.known[value] end
    local plain = core.state(value, walk.call, path)
    if plain then return plain end
    local node
    if has_state_dict(value) then
        node = read(state_of(value, walk, path), walk, path)
    elseif type(value) == "table" and (getmetatable(value) == nil or marks[getmetatable(value)]) then
        node = read_table(value, walk, path)
    else
        core.raise("type", walk.call, ("%s is %s; a state has only booleans, numbers, strings, tensors, plain tables and objects with state_dict()"):format(
            path, options.shown(value)))
    end
    walk.known[value] = node
    return node
end

--- Returns the tree of a value; for an invalid value raises an error with the call and the place, "state['net'][1]".
function tree.of(value, call, argument)
    return read(value, { call = call, known = {}, inside = {}, open = {} }, argument)
end

-- ---- Trees to tables ---------------------------------------------------------------------------------------------

local make

local function make_list(node, mark, tensors)
    local list = {}
    for i = 0, node:count() - 1 do
        local _, child = node:entry(i)
        list[i + 1] = make(child, tensors)
    end
    return (mark == Tuple or #list == 0) and setmetatable(list, mark) or list
end

local function make_dict(node, tensors)
    local dict = {}
    for i = 0, node:count() - 1 do
        local key, child = node:entry(i)
        dict[key] = make(child, tensors)
    end
    return #dict > 0 and setmetatable(dict, Dict) or dict
end

function make(node, tensors)
    local kind, value, address = node:value()
    if kind == "plain" then return value end
    if kind == "none" then return tree.none end
    if kind == "list" then return make_list(node, List, tensors) end
    if kind == "tuple" then return make_list(node, Tuple, tensors) end
    if kind == "dict" then return make_dict(node, tensors) end
    tensors[address] = tensors[address] or value
    return tensors[address]
end

--- Returns the value of a tree; a tensor at two places is a single object.
function tree.value(node) return make(node, {}) end

return tree
