-- Runs random programs from standard input, each with a length and a source. Writes the observations: a line for each
-- tensor, "refused" or "error" with the message of a raised error, "done" after each program.
local yoke = require "yoke"

local function flat(value, into)
    if type(value) == "table" then
        for i = 1, #value do flat(value[i], into) end
    elseif math.type(value) == "float" then
        into[#into + 1] = ("%.17g"):format(value)
    else
        into[#into + 1] = tostring(value)
    end
    return into
end

-- Writes the line of a tensor: a word for the tensor, the dtype, the shape, the strides, the elements.
local function see(word, x)
    io.write(word, "|", x.dtype, "|", table.concat(x.shape, " "), "|", table.concat(x.strides, " "),
        "|", table.concat(flat(x:tolist(), {}), " "), "\n")
end

local function run(source)
    local v = {}
    local ok, problem = pcall(assert(load(source)), yoke, v, see)
    if not ok then
        local code = type(problem) == "table" and problem.code
        local kind = (code == "state" or code == "unsupported") and "refused" or "error"
        io.write(kind, "|", (tostring(problem):gsub("\n", " ")), "\n")
    end
    for _, x in pairs(v) do x:close() end
    io.write("done\n")
    io.flush()
end

for length in io.lines() do run(io.read(tonumber(length))) end
