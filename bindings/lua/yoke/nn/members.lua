--- Members of modules: what each module holds, the walk over all of it, and the methods that find members by name.
local core = require "yoke.core"
local options = require "yoke.options"

local lists = {}

-- Members and plain values of each module. A module's own table stays empty, because Lua only reports the assignment
-- to an absent field: a module assigned over a plain value must become a member.
local members = setmetatable({}, { __mode = "k" })
lists.of = members

-- Tensors that have been parameters: a frozen parameter is still a parameter.
local parameters = setmetatable({}, { __mode = "k" })
lists.parameters = parameters

function lists.is_module(value) return type(value) == "table" and members[value] ~= nil end

local function is_parameter(value)
    return core.is_tensor(value) and not value:is_closed() and value.is_leaf and (value.requires_grad or parameters[value] == true)
end

-- A number names a member of a container: list[0].
local function key_of(name) return math.type(name) == "integer" and tostring(name) or name end

function lists.add(self, kind, name, value, call)
    local own = members[self]
    local taken = own.values[name] ~= nil and own.kinds[name] ~= kind and own.kinds[name]
    if call and taken then core.raise("value", call, ("'%s' is a %s of this module; assign nil to it first"):format(name, taken)) end
    if not own.kinds[name] then own.order[#own.order + 1] = name end
    own.kinds[name], own.values[name], own.plain[name] = kind, value, nil
    if kind == "parameter" and value ~= nil then parameters[value] = true end
end

-- Returns an index function: instances look into their members and plain fields, then their class.
function lists.make_index(class)
    return function(self, name)
        local own = members[self]
        name = key_of(name)
        local value = own.values[name]
        if value == nil then value = own.plain[name] end
        if value == nil then return class[name] end
        return value
    end
end

local wanted = { parameter = "for a trained parameter assign nn.Parameter(tensor); for any other leaf call module:register_parameter(name, tensor); for new values call yoke.no_grad(function() %s:copy_(tensor) end)",
    module = "assign a module, or nil first", buffer = "assign a tensor, or nil first" }

-- Raises for a value that would take a parameter, buffer or module out of states and optimizers.
local function refuse(self, kind, name, value)
    core.raise("type", self.class_name, ("cannot assign %s as %s '%s'; %s"):format(options.shown(value), kind, tostring(name),
        wanted[kind]:format("module." .. tostring(name))))
end

-- Keeps a value as PyTorch does: a parameter replaces anything, and no other tensor replaces a parameter.
function lists.newindex(self, name, value)
    local own = members[self]
    name = key_of(name)
    local kind = own.kinds[name]
    if kind == "module" and own.values[name] == nil then kind = nil end
    if is_parameter(value) then
        lists.add(self, "parameter", name, value)
    elseif kind and value == nil or kind == "buffer" and core.is_tensor(value) then
        lists.add(self, kind, name, value) -- nil: out of use
    elseif kind == "parameter" then
        refuse(self, kind, name, value)
    elseif lists.is_module(value) then
        lists.add(self, "module", name, value)
    elseif kind then
        refuse(self, kind, name, value)
    else
        own.plain[name] = value
    end
end

-- Calls visit(full name, owner, name, value) for each member of the kinds: a module's own in order, then the members
-- of its inner modules, depth first. Each module is entered once. With again(full name), each module is entered under
-- every name; again is called if a module would be entered from within itself.
local function walk(module, kinds, prefix, visit, again, entered)
    local own = members[module]
    entered = entered or {}
    entered[module] = true
    for _, name in ipairs(own.order) do
        if own.values[name] ~= nil and kinds[own.kinds[name]] and own.kinds[name] ~= "module" then
            visit(prefix .. name, module, name, own.values[name])
        end
    end
    for _, name in ipairs(own.order) do
        local value = own.values[name]
        if own.kinds[name] == "module" and value ~= nil then
            if kinds.module then visit(prefix .. name, module, name, value) end
            if not entered[value] then
                walk(value, kinds, prefix .. name .. ".", visit, again, entered)
            elseif again then
                again(prefix .. name)
            end
        end
    end
    if again then entered[module] = nil end
end

lists.walk = walk

-- The entries {name, value} of a kind, each value once.
function lists.collect(module, kinds)
    local list, seen = {}, { [module] = true }
    walk(module, kinds, "", function(full_name, _, _, value)
        if not seen[value] then
            seen[value] = true
            list[#list + 1] = { full_name, value }
        end
    end)
    return list
end

local function iterate(list)
    local i = 0
    return function()
        i = i + 1
        if list[i] then return list[i][1], list[i][2] end
    end
end

-- ---- Methods of modules ---------------------------------------------------------------------------------------------

local Members = {}

--- A list of all parameters, as an optimizer takes it.
function Members:parameters()
    local list = {}
    for i, entry in ipairs(lists.collect(self, { parameter = true })) do list[i] = entry[2] end
    return list
end

--- for name, parameter in net:named_parameters() do ... end
function Members:named_parameters() return iterate(lists.collect(self, { parameter = true })) end

--- A list of all buffers.
function Members:buffers()
    local list = {}
    for i, entry in ipairs(lists.collect(self, { buffer = true })) do list[i] = entry[2] end
    return list
end

--- for name, buffer in net:named_buffers() do ... end
function Members:named_buffers() return iterate(lists.collect(self, { buffer = true })) end

--- for name, module in net:named_modules() do ... end; not the module itself.
function Members:named_modules() return iterate(lists.collect(self, { module = true })) end

--- for name, module in net:children() do ... end; direct children, in order.
function Members:children()
    local own, list = members[self], {}
    for _, name in ipairs(own.order) do
        if own.kinds[name] == "module" and own.values[name] ~= nil then list[#list + 1] = { name, own.values[name] } end
    end
    return iterate(list)
end


--- for name, module in net:named_children() do ... end: children().
Members.named_children = Members.children

-- Returns the member `name` of a module; raises with the names that there are.
local function entry(call, target, kind, name, owner)
    local own = members[owner]
    if own.kinds[name] == kind and own.values[name] ~= nil then return own.values[name] end
    local names = {}
    for _, each in ipairs(own.order) do
        if own.kinds[each] == kind and own.values[each] ~= nil then names[#names + 1] = each end
    end
    local near = core.nearest(name, names)
    local meant = near and ("did you mean '%s'?"):format(near) or #names > 0 and "there are " .. table.concat(names, ", ") or "there is none"
    core.raise("value", call, ("argument 'target' is '%s', but %s has no %s '%s'; %s"):format(target, owner.class_name, kind, name, meant))
end

-- Returns the member at a dotted name; the names before the last are modules.
local function member_at(self, call, target, kind)
    if type(target) ~= "string" then
        core.raise("type", call, ("argument 'target' is %s; it takes a string"):format(options.shown(target)))
    end
    local owner, path, last = self, target:match "^(.-)%.?([^.]*)$"
    for name in path:gmatch "[^.]+" do owner = entry(call, target, "module", name, owner) end
    return entry(call, target, kind, last, owner)
end

--- The module, parameter or buffer with a dotted name; "" is the module itself.
function Members:get_submodule(target) return target == "" and self or member_at(self, "get_submodule", target, "module") end
function Members:get_parameter(target) return member_at(self, "get_parameter", target, "parameter") end
function Members:get_buffer(target) return member_at(self, "get_buffer", target, "buffer") end

--- Adds a module under a name, as an assignment does.
function Members:add_module(name, module)
    options.name("add_module", name)
    if name == "" or name:find(".", 1, true) then
        core.raise("value", "add_module", ("argument 'name' is '%s'; a name that is not empty and has no dot is needed"):format(name))
    elseif not lists.is_module(module) then
        core.raise("type", "add_module", ("argument 'module' is %s; it takes a module"):format(options.shown(module)))
    end
    local own = members[self]
    if own.values[name] == nil and own.plain[name] == nil and self[name] ~= nil then
        core.raise("value", "add_module", ("'%s' is a method or field of %s; choose another name"):format(name, self.class_name))
    end
    lists.add(self, "module", name, module, "add_module")
end
Members.register_module = Members.add_module

--- Gives a class these methods.
function lists.add_to(class)
    for name, method in pairs(Members) do class[name] = method end
end

return lists
