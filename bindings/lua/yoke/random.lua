--- Random streams in a script's variables: get_rng_state, set_rng_state and Generator.
local core = require "yoke.core"
local options = require "yoke.options"

local random = {}

local function pack(seed, offset)
    return core.frombuffer(string.pack("<i8i8", seed, offset), { 16 }, "uint8", "cpu")
end

local function unpack(state, call)
    local known = type(state) == "userdata" and pcall(function() return state.dtype end)
    if not (known and state.dtype == "uint8" and state.numel == 16) then
        core.raise("value", call, "argument 'state' is " .. tostring(state) ..
            "; it must be a result of get_rng_state or get_state")
    end
    return string.unpack("<i8i8", state:tobytes())
end

--- Returns the state of this thread's random numbers, on every device: a uint8 tensor of 16 bytes.
function random.get_rng_state() return pack(core.get_rng_state()) end

--- Puts this thread's random numbers where get_rng_state found them: the same numbers follow again.
function random.set_rng_state(state)
    local seed, offset = unpack(state, "set_rng_state")
    core.set_rng_state(seed, offset)
end

--- Separate stream of random numbers. A random op draws from it by `generator`: yoke.randn(3, {generator = g}); ops
--- find the memory under `stream`. In use, all random numbers of this thread come from the stream; the scope
--- belongs to the thread, so code inside should not yield.
local Generator = {}
Generator.__index = Generator

local function place_of(self)
    if self.outer then return core.get_rng_state() end
    return core.stream_place(self.memory)
end

local function put(self, seed, offset)
    if self.outer then
        core.set_rng_state(seed, offset)
    else
        core.set_stream(self.memory, seed, offset)
    end
    return self
end

--- Starts the stream at a seed; returns the generator.
function Generator:manual_seed(seed)
    local whole = math.tointeger(type(seed) == "number" and seed or nil)
    if not whole then
        core.raise("type", "Generator", "argument 'seed' is " .. tostring(seed) .. "; it takes an integer")
    end
    return put(self, whole, 0)
end

function Generator:get_state() return pack(place_of(self)) end

function Generator:set_state(state)
    local seed, offset = unpack(state, "set_state")
    return put(self, seed, offset)
end

--- Saves and loads the generator in a state.
Generator.state_dict = Generator.get_state

function Generator:load_state_dict(state)
    local seed, offset = unpack(state, "load_state_dict")
    return put(self, seed, offset)
end

local function leave(self)
    if not self.outer then return end
    core.set_stream(self.memory, core.get_rng_state())
    local outer = self.outer
    self.outer, self.stream = nil, self.memory
    core.set_rng_state(outer[1], outer[2])
end

--- `local _ <close> = g:use()`, or g:use(fn, ...), which returns fn's results.
function Generator:use(fn, ...)
    if self.outer then
        core.raise("state", "Generator", "this generator is already in use; leave its scope first, or make another generator")
    end
    local outer = { core.get_rng_state() }
    core.set_rng_state(core.stream_place(self.memory))
    self.outer, self.stream = outer, false
    local generator = self
    local scope <const> = setmetatable({}, { __close = function() leave(generator) end })
    if fn == nil then return scope end
    local _ <close> = scope
    return (function(...) return ... end)(fn(...))
end

options.check_self(Generator, "generator")

--- yoke.Generator(device, seed), or yoke.Generator{device =, seed = 0}.
function random.Generator(...)
    local device, seed = options.read("Generator", { { "device", options.none }, { "seed", 0 } }, ...)
    local where = device and core.device(device) or core.current_device()
    if device and not where then core.raise("value", "Generator", "there is no device " .. tostring(device)) end
    local memory = core.new_stream()
    return setmetatable({ device = where, memory = memory, stream = memory }, Generator):manual_seed(seed or 0)
end

return random
