--- Words of PyTorch's for the card of a rank: device_ids = {d} and output_device = d.
local core = require "yoke.core"
local options = require "yoke.options"

local own_card = {}

local function text(given)
    if type(given) == "userdata" and not core.is_tensor(given) then return tostring(given) end
    if type(given) ~= "table" or getmetatable(given) then return options.shown(given) end
    local parts = {}
    for i, each in ipairs(given) do parts[i] = text(each) end
    return "{" .. table.concat(parts, ", ") .. "}"
end

local function refuse(kind, call, name, given, problem)
    core.raise(kind, call, ("option '%s' is %s%s"):format(name, text(given), problem))
end

-- Returns the only device of `device_ids`, nil without devices.
local function only(call, given)
    if not given then return nil end
    if type(given) ~= "table" or getmetatable(given) then
        refuse("type", call, "device_ids", given, ("; it must be a list of one device, {%s}, or left out"):format(text(given)))
    end
    if #given > 1 then
        refuse("value", call, "device_ids", given, (", but a rank uses one card; start a rank for each card: yoke run -n %d"):format(#given))
    end
    if given[1] == nil and next(given) ~= nil then
        refuse("type", call, "device_ids", given, "; it must be a list of one device, such as {'cuda:0'}, or left out")
    end
    return given[1]
end

-- Returns the device that is meant; an index counts the devices of a kind.
local function opened(call, name, given, device, kind)
    if math.type(device) == "integer" then device = ("%s:%d"):format(kind, device) end
    if type(device) ~= "string" and (type(device) ~= "userdata" or core.is_tensor(device)) then
        local such = name == "device_ids" and "{'cuda:0'}" or "'cuda:0'"
        refuse("type", call, name, given, "; it must be a device, an index or a text, such as " .. such)
    end
    local found, problem = core.device(device)
    if not found then error(problem, 0) end
    return found
end

-- Raises unless `device`, from the option `given`, is the only entry of `homes`, texts in their order.
local function check_one(call, name, given, device, homes)
    if #homes > 1 then
        refuse("value", call, name, given, (", but the module is on %s; leave out this argument, because a module on several devices moves its own tensors")
            :format(table.concat(homes, " and ")))
    end
    local kind = homes[homes[1]].kind
    if kind == "cpu" then
        refuse("value", call, name, given, ", but the module is on cpu; leave out this argument, or move the module to its card first: module:to(device)")
    end
    local meant = tostring(opened(call, name, given, device, kind))
    if meant ~= homes[1] then
        refuse("value", call, name, given, (", which is %s, but the module is on %s; give the module's own card, or move the module first: module:to('%s')")
            :format(meant, homes[1], meant))
    end
end

--- Returns the card of `device_ids`, nil without a card. Raises unless parameters lie on all named devices.
function own_card.of(call, device_ids, output_device, parameters)
    local device, homes = only(call, device_ids), {}
    for _, each in ipairs(parameters) do
        local where = tostring(each.device)
        if not homes[where] then homes[#homes + 1], homes[where] = where, each.device end
    end
    if #homes == 0 then return nil end -- refused elsewhere for its own reason
    if device ~= nil then check_one(call, "device_ids", device_ids, device, homes) end
    if output_device then check_one(call, "output_device", output_device, output_device, homes) end
    return device ~= nil and homes[homes[1]] or nil
end

return own_card
