-- Worker of overhead.py: the calls from Lua.
local yoke = require "yoke"

yoke.set_device "cpu"
yoke.set_num_threads(1)
local a, b, g = yoke.rand { 8 }, yoke.rand { 8 }, yoke.rand { 8 }:requires_grad_(true)

local cases = {
    ["add"] = function(count) for _ = 1, count do local _ = yoke.add(a, b) end end,
    ["operator"] = function(count) for _ = 1, count do local _ = a + b end end,
    ["add with grad"] = function(count) for _ = 1, count do local _ = yoke.add(g, b) end end,
    ["sum by axis"] = function(count) for _ = 1, count do local _ = a:sum { axis = 0 } end end,
    ["sum by dim"] = function(count) for _ = 1, count do local _ = a:sum { dim = 0 } end end,
    ["forward and backward"] = function(count)
        for _ = 1, count do
            g:zero_grad()
            local sum = (g + b):sum()
            sum:backward()
        end
    end,
}

io.stdout:setvbuf "line"
print("Yoke " .. yoke.version .. ", " .. _VERSION)
for line in io.lines() do
    local case, count = line:match "^(.+) (%d+)$"
    count = math.tointeger(count)
    local start = os.clock() -- seconds of this process: what else runs on the machine does not count
    cases[case](count)
    print((os.clock() - start) / count)
end
