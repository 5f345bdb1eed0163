-- Trains the network of fashion_mnist.lua on any number of ranks, each with different pictures.
--
--     yoke run -n 2 -- lua5.4 ddp_fashion.lua [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N]
--                                             [--seed 0] [--limit N] [--losses] [--save FOLDER] [--every 100]
--
-- By "auto" each rank of a machine trains on a separate GPU, or all on the CPU. ddp_fashion.py and ddp_fashion.c do
-- the same, and give the same losses bit for bit. With --save each program continues a run of the others from the
-- folder; all ranks must see the folder.
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local fashion = require "fashion"
local SavedRun = require "saved_run"
local yoke = require "yoke"
local nn = yoke.nn

local BATCH = 64 -- per rank

-- Up to so many indices of an iterator.
local function take(order, count)
    local some = {}
    while #some < count do
        local index = order()
        if not index then break end
        some[#some + 1] = index
    end
    return some
end

-- Returns the loss of each step, the mean over all ranks.
local function train(net, images, labels, options, group, saved)
    local count = images.shape[1]
    local ddp = yoke.DistributedDataParallel(net, { group = group })
    local sampler = yoke.data.DistributedSampler(count, { rank = group.rank, world_size = group.size, seed = options.seed })
    local batches = (#sampler + BATCH - 1) // BATCH
    local steps = options.epochs * batches
    local optimizer = yoke.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
    local schedule = yoke.optim.schedule.linear(optimizer, 0.1, 0.0, steps)
    local scaler = yoke.GradScaler { enabled = options.amp == "f16" }
    local losses = yoke.zeros { steps }
    local parts = { net = net, optimizer = optimizer, schedule = schedule, scaler = scaler, sampler = sampler, losses = losses }
    local order
    for step in saved:steps(steps, parts) do
        if step % batches == 0 then sampler:set_epoch(step // batches) end
        if step % batches == 0 or not order then order = sampler:indices() end
        local rows = yoke.tensor(take(order, BATCH), { dtype = "int64" })
        local x = images:index_select(0, rows) / 255
        local loss = yoke.autocast({ dtype = fashion.AMP[options.amp] or nil, enabled = options.amp ~= "off" }, function()
            return ddp(x):cross_entropy(labels:index_select(0, rows))
        end)
        optimizer:zero_grad()
        scaler:scale(loss):backward()
        scaler:step(optimizer)
        scaler:update()
        schedule:step()
        losses[step] = loss:detach()
        assert(group:all_reduce(losses[step], "avg"))
        if group.rank == 0 then fashion.show_progress(step + 1, steps) end
    end
    return losses:tolist()
end

-- Returns the share of correctly classified pictures: each rank looks at some of them.
local function accuracy(net, images, labels, group)
    local _ <close> = yoke.no_grad()
    local count = images.shape[1]
    local sampler = yoke.data.DistributedSampler(count, { rank = group.rank, world_size = group.size, shuffle = false, pad = false })
    local right, order = yoke.zeros({ 1 }, { dtype = "int64" }), sampler:indices()
    local some = take(order, 1000)
    while #some > 0 do
        local rows = yoke.tensor(some, { dtype = "int64" })
        local guesses = net(images:index_select(0, rows) / 255):argmax(1)
        right:add_(guesses:eq(labels:index_select(0, rows)):sum())
        some = take(order, 1000)
    end
    assert(group:all_reduce(right))
    return right:item() / count
end

local function main()
    local options = fashion.read_options()
    local group = assert(yoke.comm.init()) -- if the device is a GPU, NCCL sums its gradients if possible
    yoke.set_device(options.device)
    yoke.set_num_threads(options.threads)
    yoke.manual_seed(options.seed)
    local images, labels = fashion.load_part(options, "train", options.limit)
    local test_images, test_labels = fashion.load_part(options, "t10k")
    if images.numel == 0 then fashion.fail(options.data .. " has no pictures to train with") end
    local net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))

    local begun_with = { amp = options.amp, epochs = options.epochs, seed = options.seed, limit = images.shape[1], ranks = group.size }
    local saved = SavedRun("ddp_fashion", options.save, options.every, begun_with, group)
    local start = fashion.now()
    local losses = train(net, images, labels, options, group, saved)
    local seconds = math.max(fashion.now() - start, 0.01) -- smallest step of the clock
    local share = accuracy(net, test_images, test_labels, group)
    if group.rank > 0 then return end

    print(("ranks: %d, device: %s, %d threads each, amp %s"):format(group.size, yoke.current_device(), yoke.get_num_threads(), options.amp))
    print(("images/s: %.0f"):format(images.shape[1] * options.epochs * (1 - saved.first / #losses) / seconds))
    print(("loss: %.4f to %.4f in %d steps"):format(losses[1], losses[#losses], #losses))
    print(("test accuracy: %.4f"):format(share))
    if options.losses then
        for i, loss in ipairs(losses) do losses[i] = ("%a"):format(loss) end
        print("losses: " .. table.concat(losses, " "))
    end
end

fashion.try(main)
