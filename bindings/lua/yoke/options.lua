--- Keyword arguments: a trailing table {name = value} after the required arguments. Arguments with a default may also
--- stand in their order, or before the table.
local core = require "yoke.core"

local options = {}

options.none = {} -- stands for an option that has no default, and takes any value

local function article(value)
    local kind = type(value)
    if kind == "nil" then return kind end
    return (kind:match "^[aei]" and "an " or "a ") .. kind
end

-- Returns what a tensor or an object is; type() would say userdata or table.
local function shown_object(value)
    if core.is_tensor(value) then
        if value:is_closed() then return "a closed tensor" end
        return ("a %s tensor of shape [%s]"):format(value.dtype, table.concat(value.shape, ", "))
    end
    local class = getmetatable(value)
    local name = type(class) == "table" and rawget(class, "__name") or class -- a protected class gives its name
    return type(name) == "string" and "a " .. name or article(value)
end

local function shown(value)
    local kind = type(value)
    if kind == "userdata" or kind == "table" then return shown_object(value) end
    return kind == "string" and "'" .. value .. "'" or kind == "number" and tostring(value) or article(value)
end

local function check_type(call, name, value, default)
    if default == options.none or type(value) == type(default) then return end
    core.raise("type", call, ("option '%s' is %s; it takes %s"):format(name, shown(value), article(default)))
end

--- Returns "; did you mean 'axis'?", or advice about a word of another library, or "" if no name of the list is near.
function options.meant(name, names) return core.meant(tostring(name), names) end

--- Returns "; did you mean 'fc.bias'?" for a name of a state, or "" if no name of the list is near.
function options.near(name, names)
    local meant
    for _, each in ipairs(names) do
        if name:sub(-#each - 1) == "." .. each then meant = each end -- as in 'module.fc.bias'
    end
    meant = meant or core.nearest(name, names)
    return meant and ("; did you mean '%s'?"):format(meant) or ""
end

local function refuse_unknown(call, name, names)
    local known = #names > 0 and "there " .. (#names > 1 and "are " or "is ") .. table.concat(names, ", ") or "it takes none"
    core.raise("value", call, ("unknown option '%s'%s; %s"):format(tostring(name), options.meant(name, names), known))
end

-- Returns the option of `names` that `name` means in a call, PyTorch's name, and its value; nil for an unknown name.
local function under_own_name(call, name, value, names)
    local place, is_flag = core.other_name(call, tostring(name), names)
    if not place then return nil end
    if is_flag then
        if type(value) ~= "boolean" then check_type(call, name, value, true) end
        value = value and 1 or 0
    end
    return names[place], value
end

local function refuse_both(call, own, name)
    core.raise("value", call, ("options '%s' and '%s' are the same option; give one of the two"):format(own, tostring(name)))
end

--- The options that a caller gave over the defaults in `known`, a table {name = default}.
function options.named(call, given, known)
    local all = {}
    for name, default in pairs(known) do
        if default ~= options.none then all[name] = default end
    end
    if given ~= nil and type(given) ~= "table" then
        core.raise("type", call, ("options are %s; give a table, {name = value}"):format(shown(given)))
    end
    for name, value in pairs(given or {}) do
        if known[name] == nil then
            local names, said = {}, name
            for each in pairs(known) do names[#names + 1] = tostring(each) end
            table.sort(names)
            name, value = under_own_name(call, said, value, names)
            if not name then refuse_unknown(call, said, names) end
            if given[name] ~= nil then refuse_both(call, name, said) end
        end
        if value ~= false then check_type(call, name, value, known[name]) end -- false switches any option off
        all[name] = value
    end
    return all
end

--- Checks a saved state: a table with these keys. `hint` has another possible cause.
function options.entries(call, name, value, keys, hint)
    if type(value) ~= "table" then
        core.raise("type", call, ("argument '%s' is %s; it must be a table, as in the result of state_dict()"):format(name, shown(value)))
    end
    for _, key in ipairs(keys) do
        if value[key] == nil then
            core.raise("value", call, ("'%s' is missing in argument '%s', which must have %s, as in the result of state_dict()%s")
                :format(key, name, table.concat(keys, ", "), hint or ""))
        end
    end
    return value
end

--- The argument 'name' of a call.
function options.name(call, value)
    if type(value) ~= "string" then
        core.raise("type", call, ("argument 'name' is %s; it takes a string"):format(shown(value)))
    end
    return value
end

--- The argument 'tensor' of a call.
function options.tensor(call, value)
    if not core.is_tensor(value) then
        core.raise("type", call, ("argument 'tensor' is %s; it takes a tensor"):format(shown(value)))
    end
    return value
end

--- A value as errors say it.
options.shown = shown

-- The table that ends a list of arguments; a class's instance is a value, no table of options.
local function trailing(arguments)
    local last = arguments[arguments.n]
    return type(last) == "table" and getmetatable(last) == nil and last or nil
end

--- The values of the arguments behind the required ones, in the order of `known`, a list of {name, default}.
function options.read(call, known, ...)
    local given = table.pack(...)
    local named = trailing(given)
    local count, values, places, names = named and given.n - 1 or given.n, {}, {}, {}
    for i, entry in ipairs(known) do places[entry[1]], names[i] = i, entry[1] end
    while count > 0 and given[count] == nil do count = count - 1 end
    if count > #known then
        core.raise("type", call, ("%d argument%s given (the last is %s); it must have %s"):format(count, count == 1 and " was" or "s were",
            shown(given[count]), #names > 0 and "at most " .. #names .. ": " .. table.concat(names, ", ") or "no arguments"))
    end
    for i = 1, count do values[i] = given[i] end
    for name, value in pairs(named or {}) do
        local own = name
        if not places[name] then own, value = under_own_name(call, name, value, names) end
        if not own then refuse_unknown(call, name, names) end
        if own ~= name and (values[places[own]] ~= nil or named[own] ~= nil) then refuse_both(call, own, name) end
        if values[places[own]] ~= nil then core.raise("type", call, ("option '%s' is given twice"):format(name)) end
        values[places[own]] = value
    end
    for i, entry in ipairs(known) do
        if values[i] ~= nil then
            check_type(call, entry[1], values[i], entry[2])
        elseif entry[2] ~= options.none then
            values[i] = entry[2]
        end
    end
    return table.unpack(values, 1, #known)
end

--- Raises unless each named value is a whole number of 1 or more: positive("Linear", {"in_features", n}, …).
function options.positive(call, ...)
    for _, pair in ipairs { ... } do
        if math.type(pair[2]) ~= "integer" or pair[2] < 1 then
            core.raise("value", call, ("argument '%s' is %s; it must be a whole number of 1 or more"):format(pair[1], shown(pair[2])))
        end
    end
end

--- Raises for more arguments than `init`, a method, takes, because Lua drops them silently.
function options.refuse_more(call, init, ...)
    local known = debug and debug.getinfo(init, "u")
    if not known or known.isvararg then return end
    for i = known.nparams, select("#", ...) do
        local extra = select(i, ...)
        if extra ~= nil then
            core.raise("type", call, ("argument %d is %s; it takes at most %d"):format(i, shown(extra), known.nparams - 1))
        end
    end
end

-- A subclass overwrites these functions, or a class and not an instance is their `self`.
local unchecked = { init = true, forward = true, extend = true, new = true }

--- Makes the methods of `class` raise if they are called without ':', as in optimizer.step(). `name` stands for an
--- instance in the error. belongs(value) tells whether a value is an instance; by default its metatable is `class`.
function options.check_self(class, name, belongs)
    belongs = belongs or function(value) return getmetatable(value) == class end
    for key, method in pairs(class) do
        if type(method) == "function" and not key:find "^__" and not unchecked[key] then
            local call = name .. ":" .. key
            class[key] = function(self, ...)
                if belongs(self) then return method(self, ...) end
                core.raise("type", call, ("called without ':', so argument 'self' is %s; write %s(...)"):format(shown(self), call))
            end
        end
    end
end

return options
