-- What fashion_mnist.lua and ddp_fashion.lua have in common: options, pictures, time and progress.
local yoke = require "yoke"

local fashion = {}

fashion.AMP = { off = false, bf16 = "bfloat16", f16 = "float16" }
local on_terminal = os.execute "test -t 2"

local HELP = [[
usage: lua5.4 %s [option value]... [--losses]

  --device auto    where to train: "cpu", "cuda:1" or any other spec of a device
  --amp off        mixed precision: off, bf16 or f16
  --epochs 3       times that every picture is seen
  --threads 0      CPU threads; 0: as many as there are
  --seed 0         of the weights and the order of pictures
  --limit N        pictures to train with; all of them if it is not given
  --data FOLDER    where the data set lies, /usr/share/datasets/fashion-mnist if it is not given
  --losses         prints every loss to its last bit
  --save FOLDER    where the run is saved; it goes on from what is there
  --every 100      steps from one save to the next
]]

function fashion.fail(message)
    io.stderr:write(tostring(message), "\n")
    os.exit(1)
end

function fashion.read_options()
    local options = { device = "auto", epochs = 3, threads = 0, seed = 0, limit = math.maxinteger,
        data = "/usr/share/datasets/fashion-mnist", amp = "off", losses = false, save = false, every = false }
    local i = 1
    while arg[i] do
        if arg[i] == "--help" or arg[i] == "-h" then
            io.write(HELP:format(arg[0]))
            os.exit(0)
        end
        local name = arg[i]:match "^%-%-(%a+)$" or ""
        local default, value = options[name], arg[i + 1]
        if name == "losses" then i, value = i - 1, true end
        if default == nil or value == nil then
            fashion.fail(("cannot use '%s'; options are --device --epochs --threads --seed --limit --data --amp --save --every, each with its value, and --losses"):format(arg[i]))
        end
        if name == "amp" and fashion.AMP[value] == nil then fashion.fail(("--amp is '%s'; it takes off, bf16 or f16"):format(value)) end
        if name == "every" or math.type(default) == "integer" then
            value = math.tointeger(tonumber(value)) or fashion.fail(("--%s is '%s'; it takes a whole number of 64 bits"):format(name, value))
        end
        options[name], i = value, i + 2
    end
    for _, range in ipairs { { "epochs", 1 }, { "limit", 1 }, { "threads", 0 } } do
        local name, least = range[1], range[2]
        if options[name] < least then fashion.fail(("--%s is %d; it must be at least %d"):format(name, options[name], least)) end
    end
    return options
end

local function read_idx(options, name)
    local tensor, err = yoke.data.read_idx(options.data .. "/" .. name)
    if not tensor then
        fashion.fail(tostring(err) .. "\nThe data set: apt-get install dataset-fashion-mnist, or name its folder with --data.")
    end
    return tensor
end

-- Pictures [N, 784], one byte a pixel, and their kinds [N], on the current device.
function fashion.load_part(options, part, limit)
    local images = read_idx(options, part .. "-images-idx3-ubyte.gz"):slice(0, 0, limit)
    local labels = read_idx(options, part .. "-labels-idx1-ubyte.gz"):slice(0, 0, limit)
    local device = yoke.current_device()
    return images:reshape { -1, 28 * 28 }:to(device), labels:to(device, "int64")
end

-- Seconds on the wall, which Lua itself tells by whole seconds only.
function fashion.now()
    local file <close> = assert(io.open "/proc/uptime")
    return file:read "n"
end

function fashion.show_progress(done, total)
    if not on_terminal then return end
    io.stderr:write(("\rlua    [%-40s] %3d %%"):format(("#"):rep(40 * done // total), 100 * done // total),
        done == total and "\n" or "")
end

return fashion
