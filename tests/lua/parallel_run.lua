-- The run of tests/python/parallel_ways.py, in Lua: the same ways of data parallel. The values are printed to the last
-- bit.
--
--     parallel_run.lua DEVICE WAY...
--
-- DEVICE: "cuda" is the card of the local rank, "cpu" the host.
local yoke = require "yoke"
local nn = yoke.nn

local IN, WIDTH, OUT, BATCH = 6, 16, 12, 2
local LOST_AT = 3 -- steps of all ranks

-- ---- The training -------------------------------------------------------------------------------------------------

-- Makes a tensor of numbers that each language has to the last bit: C's sin of doubles.
local function wave(rows, columns, scale, pitch, phase)
    local made = {}
    for i = 1, rows do
        made[i] = {}
        for j = 1, columns do made[i][j] = scale * math.sin(pitch * ((i - 1) * columns + j - 1) + phase) end
    end
    return yoke.tensor(made)
end

local Run = {}
Run.__index = Run

local function begin(group, compression)
    local net = nn.Sequential(nn.Linear(IN, WIDTH), nn.Tanh(), nn.Linear(WIDTH, OUT))
    local _ <close> = yoke.no_grad()
    for i, each in ipairs(net:parameters()) do
        local columns = each.shape[2]
        local values = wave(each.shape[1], columns or 1, 0.3, 0.7, i - 1.0)
        each:copy_(columns and values or values:reshape { -1 })
    end
    local optimizer = yoke.optim.SGD(net:parameters(), { lr = 0.1, momentum = 0.9 })
    local ddp = yoke.DistributedDataParallel(net, { group = group, bucket_mb = 0.0003, compression = compression })
    return setmetatable({ group = group, net = net, optimizer = optimizer, ddp = ddp }, Run)
end

function Run:go_back(step)
    local y = self.ddp(wave(BATCH, IN, 3.0, 1.7, self.group.rank + 0.3 * step))
    local loss = (y * y):mean()
    loss:backward()
end

function Run:steps(first, last)
    for step = first, last do
        self.optimizer:zero_grad()
        self:go_back(step)
        self.optimizer:step()
    end
end

local function hex(bytes) return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

-- Prints parameters, then gradients.
function Run:tell(name)
    local told = {}
    for _, each in ipairs(self.net:parameters()) do told[#told + 1] = hex(each:detach():tobytes()) end
    for _, each in ipairs(self.net:parameters()) do told[#told + 1] = each.grad and hex(each.grad:tobytes()) or "" end
    print(name .. " " .. table.concat(told, ","))
end

function Run:finish(name)
    self.optimizer:zero_grad()
    self:go_back(4)
    self:tell(name)
    self.ddp:close()
end

-- ---- The ways -----------------------------------------------------------------------------------------------------

local ways = {}

local function compressed(compression)
    return function(group, name)
        local run = begin(group, compression)
        run:steps(0, 3)
        run:finish(name)
    end
end

ways.plain, ways.bf16, ways.powersgd = compressed(nil), compressed "bf16", compressed "powersgd:rank=2,start=2"

function ways.no_sync(group, name)
    local run = begin(group)
    run:steps(0, 0)
    run.optimizer:zero_grad()
    run.ddp:no_sync(function() run:go_back(1) end)
    run:go_back(2)
    run.optimizer:step()
    run:finish(name)
end

-- Gives each rank two steps more than the one before.
function ways.join(group, name)
    local run = begin(group)
    assert(group:join(function() run:steps(0, 2 * group.rank) end, { run.optimizer }))
    run:steps(2, 3) -- with the momentum of the last rank to arrive
    run:finish(name)
end

-- Loses the last rank behind the backward of a step, which rank 1 alone has made whole.
function ways.lost(group, name)
    local run = begin(group)
    run:steps(0, LOST_AT - 1)
    run.optimizer:zero_grad()
    run:go_back(LOST_AT)
    local is_fine, problem = pcall(function()
        assert(group:barrier()) -- all ranks have the gradients on their cards
        if group.rank == group.size - 1 then os.execute "kill -9 $PPID" end
        assert(group:barrier())
    end)
    print("told " .. (is_fine and "nothing" or problem.message))
    if group.rank == 1 then run.optimizer:step() end
    local smaller = assert(group:shrink(20.0))
    run.ddp:regroup(smaller, { run.optimizer })
    run.group = smaller
    run:steps(LOST_AT + 1, LOST_AT + 3)
    run:finish(name)
    print("group " .. tostring(smaller))
end

local group = assert(yoke.comm.init { timeout = 60.0 })
yoke.set_device(arg[1] == "cuda" and "cuda:" .. group.local_rank or arg[1])
for i = 2, #arg do ways[arg[i]](group, arg[i]) end
print("group " .. tostring(group))
