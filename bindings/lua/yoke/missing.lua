--- Modules whose parts are read at their first use, and errors about PyTorch's names that Yoke does not have.
local core = require "yoke.core"

local missing = {}

--- Raises for a name of PyTorch that the module does not have; the error says what to write. Returns nil for any other
--- name, as a table does.
function missing.name(place, name)
    local text = type(name) == "string" and core.foreign_name(place, name)
    if text then
        core.raise("value", place, ("there is no '%s'; %s"):format(name, text))
    end
    return nil
end

--- Returns the table of a module, whose parts in `later`, {name = module}, are read at their first use.
function missing.module(place, module, later)
    return setmetatable(module, {
        __index = function(self, name)
            local source = later and later[name]
            if not source then return missing.name(place, name) end
            local value = require(source)
            rawset(self, name, value)
            return value
        end,
        __pairs = function(self)
            for name in next, later or {} do local _ = self[name] end
            return next, self, nil
        end,
    })
end

return missing
