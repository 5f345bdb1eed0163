-- Calls the added op from Lua, as a function and as a method, and checks its gradient by finite differences.
local yoke = require "yoke"

local function tensor(...) return yoke.tensor({ ... }, { dtype = "float64" }) end
local values = { 1, -2, 3 }
local x = tensor(table.unpack(values))
x.requires_grad = true
local y = yoke.test_cube(x)
for i, cube in ipairs { 1, -8, 27 } do assert(y:tolist()[i] == cube) end
y:sum():backward()
local step = 1e-5
for i, value in ipairs(values) do
    local above, below = tensor(value + step):test_cube():item(), tensor(value - step):test_cube():item()
    assert(math.abs(x.grad:tolist()[i] - (above - below) / (2 * step)) < 1e-8)
end
