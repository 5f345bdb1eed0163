-- Uses the added dtypes from Lua: made, cast, moved, printed, read.
local yoke = require "yoke"

local device = os.getenv "YOKE_DEVICE"
assert(yoke.float8_e3m4 == "float8_e3m4" and yoke.int16 == "int16")

local function list(x) return table.concat(x:tolist(), " ") end

local x = yoke.tensor({ 1.5, -2.25, 15.74 }, { dtype = yoke.float8_e3m4, device = device })
assert(x.dtype == "float8_e3m4" and x.itemsize == 1 and list(x) == "1.5 -2.25 15.5", list(x))
assert(tostring(x):find("1.5", 1, true) and tostring(x):find("float8_e3m4", 1, true), tostring(x))
assert(list(x:to "float64") == "1.5 -2.25 15.5" and x[1]:item() == -2.25)
assert(list(yoke.tensor({ 0.1, 100 }, { device = device }):to "float8_e3m4") == "0.09375 inf")

local n = yoke.tensor({ 300, -32768 }, { dtype = yoke.int16, device = device })
assert(n.dtype == "int16" and n.itemsize == 2 and list(n) == "300 -32768" and math.type(n:tolist()[1]) == "integer")
assert(tostring(n):find("300", 1, true) and tostring(n):find("int16", 1, true), tostring(n))
assert(list(n:to "float32") == "300.0 -32768.0" and n[0]:item() == 300)

local path = os.tmpname()
assert(yoke.save(path, { n = n, list = { n[0] } }))
local back = assert(yoke.load(path))
assert(back.n.dtype == "int16" and list(back.n) == "300 -32768" and back.list[1]:item() == 300)
local saved, why = pcall(yoke.save, path, { x = x })
assert(not saved and tostring(why):find("'x' is float8_e3m4", 1, true), tostring(why))
os.remove(path)
local made, problem = pcall(yoke.tensor, { 32768 }, { dtype = yoke.int16 })
assert(not made and tostring(problem):find("the range of int16", 1, true), tostring(problem))
