-- Common parts of the Fashion-MNIST programs: options, pictures, time, progress, and training in a single process.
local SavedRun = require "saved_run"
local yoke = require "yoke"

local fashion = {}

fashion.AMP = { off = false, bf16 = "bfloat16", f16 = "float16" }
local on_terminal = os.execute "test -t 2"

local HELP = [[
usage: lua5.4 %s [option value]... [--losses]

  --device auto    where to train: "cpu", "cuda:1" or any other spec of a device
  --amp off        mixed precision: off, bf16 or f16
  --epochs 3       number of passes over all pictures
  --threads 0      CPU threads; 0: all that are granted
  --seed 0         seed of the weights and of the order of the pictures
  --limit N        train only with the first N pictures
  --data FOLDER    folder of the data set (/usr/share/datasets/fashion-mnist)
  --losses         print the loss of every step, in hexadecimal
  --save FOLDER    folder of the saved run; a new start continues from there
  --every 100      steps from one save to the next
%s]]

function fashion.fail(message)
    io.stderr:write(tostring(message), "\n")
    os.exit(1)
end

-- `more` are another program's own: {name, default, least, what help says}.
function fashion.read_options(more)
    local options = { device = "auto", epochs = 3, threads = 0, seed = 0, limit = math.maxinteger,
        data = "/usr/share/datasets/fashion-mnist", amp = "off", losses = false, save = false, every = false }
    local ranges, help, names = { { "epochs", 1 }, { "limit", 1 }, { "threads", 0 } }, "", ""
    for _, each in ipairs(more or {}) do
        options[each[1]], ranges[#ranges + 1] = each[2], { each[1], each[3] }
        help, names = help .. ("  --%-14s %s\n"):format(each[1] .. " " .. each[2], each[4]), names .. " --" .. each[1]
    end
    local i = 1
    while arg[i] do
        if arg[i] == "--help" or arg[i] == "-h" then
            io.write(HELP:format(arg[0], help))
            os.exit(0)
        end
        local name = arg[i]:match "^%-%-([%a-]+)$" or ""
        local default, value = options[name], arg[i + 1]
        if name == "losses" then i, value = i - 1, true end
        if default == nil or value == nil then
            fashion.fail(("cannot use '%s'; options are --device --epochs --threads --seed --limit --data --amp --save --every%s, each with its value, and --losses"):format(arg[i], names))
        end
        if name == "amp" and fashion.AMP[value] == nil then fashion.fail(("--amp is '%s'; it must be off, bf16 or f16"):format(value)) end
        if name == "every" or math.type(default) == "integer" then
            value = math.tointeger(tonumber(value)) or fashion.fail(("--%s is '%s'; it must be a whole number of 64 bits"):format(name, value))
        end
        options[name], i = value, i + 2
    end
    for _, range in ipairs(ranges) do
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

-- Returns pictures [N, 784], a byte per pixel, and their kinds [N], on the current device.
function fashion.load_part(options, part, limit)
    local images = read_idx(options, part .. "-images-idx3-ubyte.gz"):slice(0, 0, limit)
    local labels = read_idx(options, part .. "-labels-idx1-ubyte.gz"):slice(0, 0, limit)
    local device = yoke.current_device()
    return images:reshape { -1, 28 * 28 }:to(device), labels:to(device, "int64")
end

-- Returns seconds of wall time, because Lua itself has only whole seconds.
function fashion.now()
    local file <close> = assert(io.open "/proc/uptime")
    return file:read "n"
end

function fashion.show_progress(done, total)
    if not on_terminal then return end
    io.stderr:write(("\rlua    [%-40s] %3d %%"):format(("#"):rep(40 * done // total), 100 * done // total),
        done == total and "\n" or "")
end

local BATCH = 128

-- The optimizer, and the schedule of its rate.
local function descend(parameters, steps)
    local optimizer = yoke.optim.SGD(parameters, { lr = 0.1, momentum = 0.9 })
    return optimizer, yoke.optim.schedule.linear(optimizer, 0.1, 0.0, steps)
end

-- Returns the loss of each step.
local function train(net, images, labels, epochs, amp, saved, descend)
    local count = images.shape[1]
    local batches = (count + BATCH - 1) // BATCH
    local steps = epochs * batches
    local optimizer, schedule = descend(net:parameters(), steps)
    local scaler = yoke.GradScaler { enabled = amp == "f16" }
    local order = yoke.arange(count) -- order of pictures, new in each epoch
    local losses = yoke.zeros { steps } -- on the device, which a number would be waited for
    local parts = { net = net, optimizer = optimizer, schedule = schedule, scaler = scaler, order = order, losses = losses }
    for step in saved:steps(steps, parts) do
        local first = step % batches * BATCH
        if first == 0 then order:copy_(yoke.randperm(count)) end
        local rows = order:slice(0, first, first + BATCH)
        local x = images:index_select(0, rows) / 255
        local loss = yoke.autocast({ dtype = fashion.AMP[amp] or nil, enabled = amp ~= "off" }, function()
            return net(x):cross_entropy(labels:index_select(0, rows))
        end)
        optimizer:zero_grad()
        scaler:scale(loss):backward()
        scaler:step(optimizer)
        scaler:update()
        schedule:step()
        losses[step] = loss:detach()
        fashion.show_progress(step + 1, steps)
    end
    return losses:tolist()
end

-- Returns the share of correctly classified pictures.
local function accuracy(net, images, labels)
    local _ <close> = yoke.no_grad()
    net:eval()
    local right, count = 0, images.shape[1]
    for first = 0, count - 1, 1000 do
        local guesses = net(images:slice(0, first, first + 1000) / 255):argmax(1):tolist()
        for i, label in ipairs(labels:slice(0, first, first + 1000):tolist()) do
            if guesses[i] == label then right = right + 1 end
        end
    end
    return right / count
end

-- Trains, and prints the results; a saved run keeps the options in `kept`. `how`, if given, replaces descend.
function fashion.run(program, options, make_net, kept, how)
    yoke.set_device(options.device)
    yoke.set_num_threads(options.threads)
    yoke.manual_seed(options.seed)
    local images, labels = fashion.load_part(options, "train", options.limit)
    local test_images, test_labels = fashion.load_part(options, "t10k")
    if images.numel == 0 then fashion.fail(options.data .. " has no pictures to train with") end
    local net = make_net()

    local begun_with = { amp = options.amp, epochs = options.epochs, seed = options.seed, limit = images.shape[1] }
    for _, name in ipairs(kept or {}) do begun_with[name] = options[name] end
    local saved = SavedRun(program, options.save, options.every, begun_with)
    local start = fashion.now()
    local losses = train(net, images, labels, options.epochs, options.amp, saved, how or descend)
    local seconds = math.max(fashion.now() - start, 0.01) -- smallest step of the clock

    local device = yoke.current_device()
    print(("device: %s (%s), %d threads, amp %s"):format(device, device.name, yoke.get_num_threads(), options.amp))
    print("no GPU: " .. yoke.why_unavailable "cuda")
    print(("images/s: %.0f"):format(images.shape[1] * options.epochs * (1 - saved.first / #losses) / seconds))
    print(("loss: %.4f to %.4f in %d steps"):format(losses[1], losses[#losses], #losses))
    print(("test accuracy: %.4f"):format(accuracy(net, test_images, test_labels)))
    print(("peak memory: %.1f MiB"):format(yoke.max_memory_allocated() / 2 ^ 20))
    if options.losses then
        for i, loss in ipairs(losses) do losses[i] = ("%a"):format(loss) end
        print("losses: " .. table.concat(losses, " "))
    end
end

-- Ends the program with the text of an error alone.
function fashion.try(main)
    local done, err = pcall(main)
    if not done then fashion.fail(err) end
end

return fashion
