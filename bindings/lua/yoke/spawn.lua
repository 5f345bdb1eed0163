--- yoke.spawn: a function in several processes of this machine, the ranks of one job, from within a script.
---
---     yoke.spawn(function(epochs)
---         local yoke = require "yoke"
---         local group = assert(yoke.comm.init())
---         …
---     end, 4, {10})
local core = require "yoke.core"
local options = require "yoke.options"

local PLAIN = { ["nil"] = true, boolean = true, number = true, string = true }

-- Returns Lua source for a value. `above` holds the enclosing tables.
local function literal(value, where, above)
    local kind = type(value)
    if PLAIN[kind] then return ("%q"):format(value) end
    if kind ~= "table" then
        core.raise("type", "spawn", ("argument '%s' is %s; it must be nil, a boolean, a number, a string or a table of these")
            :format(where, options.shown(value)))
    end
    if above[value] then core.raise("value", "spawn", ("argument '%s' is a table that contains itself; it must be a tree"):format(where)) end
    above[value] = true
    local parts = {}
    for key, each in next, value do
        local name = where .. "[" .. (PLAIN[type(key)] and ("%q"):format(key) or tostring(key)) .. "]"
        parts[#parts + 1] = "[" .. literal(key, name, above) .. "]=" .. literal(each, name, above)
    end
    above[value] = nil
    return "{" .. table.concat(parts, ",") .. "}"
end

local function check_function(fn)
    local about = type(fn) == "function" and debug.getinfo(fn, "u")
    if not about or not pcall(string.dump, fn) then
        core.raise("type", "spawn", ("argument 'fn' is %s; it takes a function in Lua"):format(options.shown(fn)))
    end
    for i = 1, about.nups do
        local name = debug.getupvalue(fn, i)
        if name ~= "_ENV" then
            core.raise("value", "spawn", ("argument 'fn' uses '%s' from outside, which other processes do not have; give it in args, or call require inside fn")
                :format(name))
        end
    end
end

-- The interpreter that runs this script.
local function interpreter()
    local program = core._program()
    if not program:match "^.*/lua[^/]*$" then
        core.raise("unsupported", "spawn", ("this program, %s, is not a Lua interpreter that yoke can start again"):format(program))
    end
    return program
end

-- Script read and run by a rank: the global environment is the first upvalue of fn, if fn has upvalues.
local CHILD = [[
package.path, package.cpath = %q, %q
local fn = load(%q, "=spawn", "b")
local name = debug.getupvalue(fn, 1)
if name then debug.setupvalue(fn, 1, _ENV) end
local args = %s
local raised
local ok, problem = xpcall(fn, function(problem)
    raised = tostring(problem)
    return debug.traceback(raised, 2)
end, table.unpack(args, 1, %d))
if ok then return end
local core = package.loaded["yoke.core"]
if core then core._comm_note_raised(raised) end -- for the ranks that then miss this one
local file = assert(io.open(os.getenv "TORCHELASTIC_ERROR_FILE" .. ".trace", "w"))
file:write(problem)
file:close()
io.stderr:write(problem, "\n")
os.exit(1, true)
]]

--- Runs fn(table.unpack(args)) in `n` new processes, as `yoke run -n N` would start them, and returns when all have
--- ended. `fn` uses globals alone; `args` are nil, booleans, numbers, strings and tables of these, with `args.n` as
--- their number if set. Printed lines have their rank in front; the input is empty. Returns true. If a rank fails,
--- the other ranks are ended, and the result is nil and an error with the rank and its traceback. Ctrl-C ends all.
return function(fn, n, args)
    check_function(fn)
    if args ~= nil and type(args) ~= "table" then
        core.raise("type", "spawn", ("argument 'args' is %s; it takes a table"):format(options.shown(args)))
    end
    if args and args.n ~= nil and (math.type(args.n) ~= "integer" or args.n < 0) then
        core.raise("value", "spawn", ("argument 'args' has the number n = %s; it takes a whole number from 0"):format(options.shown(args.n)))
    end
    local given, program = args or {}, interpreter()
    local text = CHILD:format(package.path, package.cpath, string.dump(fn), literal(given, "args", {}), given.n or #given)
    io.stdout:flush() -- keeps earlier output in front
    local code, problem, trace = core._run({ program, "-" }, n, text)
    if code == 0 then return true end
    local _, failure = pcall(core.raise, "comm", "spawn", problem .. (trace == "" and "" or "\n\n" .. trace))
    return nil, failure
end
