-- Trains a small network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.
--
--     lua5.4 fashion_mnist.lua [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0] [--limit N]
--                              [--losses] [--save FOLDER] [--every 100]
--
-- fashion_mnist.py and fashion_mnist.c do the same, and give the same losses bit for bit. With --save each goes on from
-- what another one has left in the folder, as if nothing had stopped it.
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local fashion = require "fashion"
local SavedRun = require "saved_run"
local yoke = require "yoke"
local nn = yoke.nn

local BATCH = 128

-- Returns the loss of each step.
local function train(net, images, labels, epochs, amp, saved)
    local count = images.shape[1]
    local batches = (count + BATCH - 1) // BATCH
    local steps = epochs * batches
    local optimizer = yoke.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
    local schedule = yoke.optim.schedule.linear(optimizer, 0.1, 0.0, steps)
    local scaler = yoke.GradScaler { enabled = amp == "f16" }
    local order = yoke.arange(count) -- of the pictures, anew in each epoch
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

-- The share of pictures whose kind the network tells.
local function accuracy(net, images, labels)
    local _ <close> = yoke.no_grad()
    local right, count = 0, images.shape[1]
    for first = 0, count - 1, 1000 do
        local guesses = net(images:slice(0, first, first + 1000) / 255):argmax(1):tolist()
        for i, label in ipairs(labels:slice(0, first, first + 1000):tolist()) do
            if guesses[i] == label then right = right + 1 end
        end
    end
    return right / count
end

local function main()
    local options = fashion.read_options()
    yoke.set_device(options.device)
    yoke.set_num_threads(options.threads)
    yoke.manual_seed(options.seed)
    local images, labels = fashion.load_part(options, "train", options.limit)
    local test_images, test_labels = fashion.load_part(options, "t10k")
    if images.numel == 0 then fashion.fail(options.data .. " holds no pictures to train with") end
    local net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    local begun_with = { amp = options.amp, epochs = options.epochs, seed = options.seed, limit = images.shape[1] }
    local saved = SavedRun("fashion_mnist", options.save, options.every, begun_with)
    local start = fashion.now()
    local losses = train(net, images, labels, options.epochs, options.amp, saved)
    local seconds = math.max(fashion.now() - start, 0.01) -- the clock tells no less

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

local done, err = pcall(main)
if not done then fashion.fail(err) end
