--- The text of a module, as tostring gives it.
local described = {} -- modules whose text is being made

local function lines_of(self)
    local lines = {}
    described[self] = true
    for name, module in self:children() do
        local text = described[module] and module.class_name .. "(...)" or tostring(module)
        lines[#lines + 1] = "  (" .. name .. "): " .. text:gsub("\n", "\n  ")
    end
    return lines
end

--- Returns the text of a module: class, result of extra(), and inner modules.
return function(self)
    local whole, lines = pcall(lines_of, self)
    described[self] = nil
    if not whole then error(lines, 0) end
    if #lines == 0 then return self.class_name .. "(" .. self:extra() .. ")" end
    return self.class_name .. "(" .. self:extra() .. "\n" .. table.concat(lines, "\n") .. "\n)"
end
