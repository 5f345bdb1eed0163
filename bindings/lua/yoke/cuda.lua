--- PyTorch's words for CUDA devices: yoke.cuda.is_available() is yoke.is_available "cuda". A device is an index among
--- the CUDA devices, counted from 0, a spec or a Device; nil is the current CUDA device, else the first. Without a CUDA
--- device figures of memory are 0 and empty_cache() does nothing; the other calls raise an error.
local core = require "yoke.core"
local missing = require "yoke.missing"

local cuda = { Stream = core.Stream, Event = core.Event }

local function open(device)
    local current = device == nil and core.current_device()
    if current and current.kind == "cuda" then return current end
    local spec = device == nil and "cuda" or math.type(device) == "integer" and "cuda:" .. device or device
    local found, problem = core.device(spec)
    if not found then error(problem, 0) end
    if found.kind ~= "cuda" then
        core.raise("value", "cuda", ("argument 'device' is %s, which is not a CUDA device; give an index or a spec such as \"cuda:0\""):format(
            tostring(found)))
    end
    return found
end

function cuda.is_available() return core.is_available "cuda" end

function cuda.device_count() return core.device_count "cuda" end

cuda.is_initialized = cuda.is_available

--- Returns the index of the current CUDA device.
function cuda.current_device() return open().index end

--- Makes a CUDA device the current device.
function cuda.set_device(device) return core.set_device(open(device)) end

--- Returns a CUDA device.
function cuda.device(device) return open(device) end

--- Waits until all work given to the device has finished.
function cuda.synchronize(device) open(device):synchronize() end

function cuda.get_device_name(device) return open(device).name end

function cuda.get_device_capability(device) return open(device).compute_capability end

function cuda.is_bf16_supported(device) return cuda.is_available() and open(device):supports "bfloat16" end

for _, name in ipairs { "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved" } do
    cuda[name] = function(device) return cuda.is_available() and core[name](open(device)) or 0 end
end

--- Returns the allocator's figures with PyTorch's keys; an empty table without a CUDA device.
function cuda.memory_stats(device) return cuda.is_available() and core.memory_stats(open(device)) or {} end

function cuda.mem_get_info(device) return core.mem_get_info(open(device)) end

function cuda.reset_peak_memory_stats(device)
    if cuda.is_available() then core.reset_peak_memory_stats(open(device)) end
end

--- Gives memory that no tensor uses back to the driver.
function cuda.empty_cache()
    if cuda.is_available() then core.empty_cache(open()) end
end

--- Calls yoke.manual_seed: one stream of random numbers serves every device.
function cuda.manual_seed(seed) core.manual_seed(seed) end

cuda.manual_seed_all = cuda.manual_seed

function cuda.current_stream(device) return core.current_stream(open(device)) end

return missing.module("cuda", cuda, { amp = "yoke.amp" })
