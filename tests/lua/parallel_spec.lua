-- DistributedDataParallel of Lua: ranks are processes. Their results equal the results of a single process.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local fails, it = support.fails, support.leak_free(it)
local nn, comm = yoke.nn, yoke.comm

local function group_of_one() return assert(comm.init { backend = "cpu", rank = 0, world_size = 1 }) end

describe("DistributedDataParallel", function()
    it("leaves the mean over all ranks in the gradients", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local layer = yoke.nn.Linear(2, 1, { bias = false })
            local ddp = yoke.DistributedDataParallel(layer, { group = group, bucket_mb = 1 })
            local function go_back(scale) ddp(yoke.full({ 1, 2 }, scale)):sum():backward() end
            local function grad() return layer.weight.grad:tolist()[1][1] end
            go_back(group.rank + 1.0)
            assert(grad() == 1.5, grad())
            layer:zero_grad()
            ddp:no_sync(function() go_back(group.rank + 1.0) end)
            assert(grad() == group.rank + 1)
            go_back(0.0)
            assert(grad() == 1.5, grad())
            layer:zero_grad()
            ddp:set_weight(group.rank == 0 and 3 or 1)
            go_back(group.rank + 1.0)
            assert(grad() == 1.25, grad())
            local dict = ddp:state_dict()
            assert(dict.weight and not dict["module.weight"])
            ddp:load_state_dict { ["module.weight"] = yoke.ones { 1, 2 } }
            assert(layer.weight:tolist()[1][2] == 1)
            ddp:close()
        end, 2))
    end)

    it("takes part with zeros where a rank used no parameter", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local Gate = yoke.nn.Module:extend("Gate")
            function Gate:init() self.layer = yoke.nn.Linear(2, 1, { bias = false }) end
            function Gate:forward(x, uses)
                local y = uses and self.layer(x) or x
                return y, { inner = { y }, name = "gate" }
            end
            local gate = Gate()
            local ddp = yoke.DistributedDataParallel(gate, { group = group })
            for step = 1, 4 do
                local y, more = ddp(yoke.full({ 1, 2 }, step + 0.0):requires_grad_(), group.rank == 0 or step % 2 == 0)
                assert(more.name == "gate" and rawequal(more.inner[1], y))
                more.inner[1]:sum():backward()
                local got = gate.layer.weight.grad:tolist()[1][1]
                assert(got == (step % 2 == 0 and step or step / 2), got)
                gate:zero_grad()
            end
            local head = yoke.ones({ 1 }):requires_grad_(true)
            local y = ddp(yoke.ones { 1, 2 }, group.rank == 0)
            local loss = y:sum() + head:sum()
            loss:backward()
            assert(gate.layer.weight.grad:tolist()[1][1] == 0.5)
            gate:zero_grad()
            local own = yoke.ones({ 1, 2 }):requires_grad_() * 2 -- the script's tensor comes back as a read-only view
            local given = ddp(own, false)
            local is_written, why = pcall(given.mul_, given, 2)
            assert(not is_written and tostring(why):find "is a view")
            local made = ddp(yoke.ones { 1, 2 }, true) -- the module's tensor comes back unchanged
            made:mul_(2)
            local both = made:sum() + given:sum()
            both:backward()
            assert(gate.layer.weight.grad:tolist()[1][1] == 2)
            local x = yoke.ones { 1, 2 }
            local _ <close> = yoke.no_grad()
            assert(rawequal(ddp(x, false), x))
            ddp:close()
        end, 2))
    end)

    it("has in yoke.grad by what it gave all that the plain module has", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local Two = yoke.nn.Module:extend("Two")
            function Two:init() self.layer = yoke.nn.Linear(2, 2, { bias = false }) end
            function Two:forward(x)
                local feature = self.layer(x)
                return feature * 3, { feature }
            end
            local two = Two()
            local ddp = yoke.DistributedDataParallel(two, { group = group })
            local y, more = ddp(yoke.ones { 1, 2 })
            local loss = y:sum() + more[1]:sum()
            assert(yoke.grad(loss, more)[1]:tolist()[1][2] == 4)
            ddp:close()
        end, 2))
    end)

    it("gives tables as the module gave them, however deep, and passes closed tensors by", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local Gives = yoke.nn.Module:extend("Gives")
            function Gives:init() self.layer = yoke.nn.Linear(2, 1, { bias = false }) end
            function Gives:forward(x, depth)
                local closed = x * 2
                closed:close()
                local inner = { self.layer(x), x, flag = false, closed = closed }
                local given = inner
                for _ = 1, depth do given = { given } end
                inner.top = given
                return given, nil, false
            end
            local ddp = yoke.DistributedDataParallel(Gives(), { group = group })
            for _, trains in ipairs { true, false } do
                local x <close> = yoke.ones { 1, 2 }
                if trains then x:requires_grad_() end
                local given, none, no = ddp(x, 200000)
                assert(none == nil and no == false)
                local inner = given
                while inner[1] and not inner.top do inner = inner[1] end
                assert(rawequal(inner.top, given) and inner.flag == false and inner.closed:is_closed())
                assert(rawequal(inner[2], x) ~= trains) -- the script's own is replaced where it requires a gradient
                inner[1]:sum():backward()
            end
            ddp:close()
        end, 2))
    end)

    it("answers for ranks that have run out of data", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local layer = yoke.nn.Linear(2, 1, { bias = false })
            local none, problem = pcall(group.join, group, function() end)
            assert(not none and problem.code == "state" and tostring(problem):find("has no DistributedDataParallel", 1, true), tostring(problem))
            local ddp = yoke.DistributedDataParallel(layer, { group = group })
            none, problem = pcall(group.join, group, function() end)
            assert(not none and problem.code == "state" and tostring(problem):find("all 2 ranks were out of data", 1, true), tostring(problem))
            local seen = {}
            assert(group:join(function()
                for step = 1, 1 + group.rank do
                    ddp(yoke.full({ 1, 2 }, group.rank + 1.0)):sum():backward()
                    seen[step] = layer.weight.grad:tolist()[1][1]
                    layer:zero_grad()
                    local _ <close> = yoke.no_grad()
                    if step > 1 then layer.weight:fill_(7) end
                end
            end))
            assert(seen[1] == 1.5 and seen[2] == (group.rank == 1 and 2 or nil))
            assert(layer.weight:tolist()[1][1] == 7)
            none, problem = pcall(group.join, group, 5)
            assert(not none and problem.code == "type")
            assert(group:monitored_barrier(30.0)) -- no rank fails before all ranks are here
            none, problem = pcall(group.join, group, function()
                if group.rank == 1 then error("no such batch", 0) end
                ddp(yoke.ones { 1, 2 }):sum():backward()
            end)
            assert(not none and tostring(problem):find("no such batch", 1, true), tostring(problem))
            ddp:close()
        end, 2))
    end)

    it("goes on in another group from the rank that is furthest", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local layer = yoke.nn.Linear(2, 1, { bias = false })
            local optimizer = yoke.optim.SGD(layer:parameters(), { lr = 0.5, momentum = 0.5 })
            local sampler <close> = yoke.data.DistributedSampler(10, { rank = group.rank, world_size = 2, shuffle = false })
            local ddp = yoke.DistributedDataParallel(layer, { group = group })
            local take = sampler:indices()
            take()
            ddp(yoke.ones { 1, 2 }):sum():backward()
            if group.rank == 1 then -- rank 1 is a step ahead
                optimizer:step()
                ddp:forward(yoke.ones { 1, 2 })
                take()
            end
            assert(group:barrier())
            local wrong, problem = pcall(ddp.regroup, ddp, 5)
            assert(not wrong and problem.code == "type" and tostring(problem):find("'group' is 5", 1, true), tostring(problem))
            wrong, problem = pcall(ddp.regroup, ddp, group, { 5 })
            assert(not wrong and problem.code == "type" and tostring(problem):find("object 1 is 5", 1, true), tostring(problem))
            local smaller <close> = assert(group:shrink())
            ddp:regroup(smaller, { optimizer, sampler })
            assert(layer.weight.grad == nil and sampler:state_dict().consumed == 4)
            local all <close> = yoke.zeros { 2, 2 }
            assert(smaller:all_gather(all, layer.weight:detach()))
            local values = all:tolist()
            assert(values[1][1] == values[2][1] and values[1][2] == values[2][2])
            local before = values[1][1]
            ddp(yoke.ones { 1, 2 }):sum():backward()
            optimizer:step() -- with the momentum of the first step, of 1
            assert(math.abs(layer.weight:tolist()[1][1] - (before - 0.75)) < 1e-6)
            ddp:close()
        end, 2))
    end)

    it("tells all ranks of a parameter or buffer that was added, frozen, removed or replaced on one", function()
        local changes = { { "was frozen" }, { "was removed" }, { "was added" }, { "is another tensor" }, { "is another tensor", true } }
        for _, change in ipairs(changes) do
            assert(yoke.spawn(function(change, is_within)
                local yoke = require "yoke"
                local group <close> = assert(yoke.comm.init())
                local layer = yoke.nn.Linear(2, 1)
                layer:register_buffer("seen", yoke.zeros { 1 })
                local ddp = yoke.DistributedDataParallel(layer, { group = group }):eval()
                assert(group:monitored_barrier(30.0))
                if group.rank == 1 and is_within then
                    rawset(layer, "forward", function(self, x)
                        self.seen = yoke.ones { 1 }
                        return yoke.nn.Linear.forward(self, x)
                    end)
                elseif group.rank == 1 then
                    if change == "was frozen" then layer.bias:requires_grad_(false) end
                    if change == "was removed" then layer.bias = nil end
                    if change == "is another tensor" then layer.seen = yoke.ones { 1 } end
                    if change == "was added" then layer.extra = yoke.ones({ 2 }):requires_grad_() end
                end
                local done, problem = pcall(function() ddp(yoke.ones { 1, 2 }):sum():backward() end)
                assert(not done and problem.code == (group.rank == 1 and "state" or "cancelled"), tostring(problem))
                local names = { ["was added"] = "the parameter 'extra' ", ["is another tensor"] = "the buffer 'seen' " }
                assert(tostring(problem):find((names[change] or "the parameter 'bias' ") .. change, 1, true), tostring(problem))
                ddp:close()
            end, 2, change))
        end
    end)

    it("tells all ranks of a backward that takes no such argument", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local ddp = yoke.DistributedDataParallel(yoke.nn.Linear(2, 1), { group = group })
            local loss = ddp(yoke.ones { 1, 2 }):sum()
            assert(group:monitored_barrier(30.0))
            local done, problem = pcall(loss.backward, loss, group.rank == 1 and "one" or nil)
            assert(not done and problem.code == (group.rank == 1 and "type" or "cancelled"), tostring(problem))
            assert(tostring(problem):find("'gradient' is", 1, true), tostring(problem))
            ddp:close()
        end, 2))
    end)

    it("tells who waits in vain what a rank was refused as they regroup", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init { timeout = 1.0 })
            local ddp = yoke.DistributedDataParallel(yoke.nn.Linear(2, 1), { group = group })
            local done, problem = pcall(function() ddp:regroup(group, group.rank == 1 and { 5 } or nil) end)
            assert(not done and problem.message:find("object 1 is 5", 1, true), tostring(problem))
            assert(problem.where:find("parallel_spec", 1, true), problem.where)
            if group.rank == 1 then group:monitored_barrier(20) end -- until the group has failed
            ddp:close()
        end, 2))
    end)

    it("takes frozen parameters of rank 0", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local layer = yoke.nn.Linear(2, 1)
            layer.weight:requires_grad_(false)
            layer.weight:fill_(group.rank + 1.0)
            local ddp = yoke.DistributedDataParallel(layer, { group = group })
            assert(layer.weight:tolist()[1][2] == 1)
            ddp(yoke.ones { 1, 2 }):sum():backward()
            assert(layer.weight.grad == nil and layer.bias.grad:tolist()[1] == 1)
            assert(group:monitored_barrier(30.0)) -- no rank fails before all ranks are here
            if group.rank == 1 then layer.weight:requires_grad_() end
            local done, problem = pcall(function() ddp(yoke.ones { 1, 2 }):sum():backward() end)
            assert(not done and tostring(problem):find("'weight' was frozen, and requires a gradient now", 1, true), tostring(problem))
            ddp:close()
        end, 2))
    end)

    it("leaves a prefix that is the module's own", function()
        local group <close> = group_of_one()
        local Holder = nn.Module:extend("Holder")
        function Holder:init() self.module = nn.Linear(2, 1) end
        local holder = Holder()
        local ddp = yoke.DistributedDataParallel(holder, { group = group })
        local weight <close> = yoke.ones { 1, 2 }
        local bias <close> = yoke.ones { 1 }
        ddp:load_state_dict { ["module.weight"] = weight, ["module.bias"] = bias }
        assert.equal(1, holder.module.bias:tolist()[1])
        bias:fill_(2)
        ddp:load_state_dict { ["module.module.weight"] = weight, ["module.module.bias"] = bias }
        assert.equal(2, holder.module.bias:tolist()[1])
        fails("type", { "load_state_dict" }, ddp.load_state_dict, ddp, 5)
        ddp:close()
        holder:close()
    end)

    it("has a state of its compression", function()
        local group <close> = group_of_one()
        local layer = nn.Linear(3, 2)
        local ddp = yoke.DistributedDataParallel(layer, { group = group, compression = "bf16" })
        local state = ddp:comm_state()
        assert.equal(0, state.steps)
        ddp:load_comm_state(state)
        fails("value", { "load_comm_state" }, ddp.load_comm_state, ddp, { steps = -1 })
        ddp:close()
        layer:close()
    end)

    it("refuses what it cannot take", function()
        local group <close> = group_of_one()
        local layer = nn.Linear(3, 2)
        fails("type", { "'module'", "5" }, yoke.DistributedDataParallel, 5, { group = group })
        fails("type", { "'group'" }, yoke.DistributedDataParallel, layer, { group = 5 })
        fails("type", { "'group'" }, yoke.DistributedDataParallel, layer)
        fails("value", { "'bucket_mb' is -1" }, yoke.DistributedDataParallel, layer, { group = group, bucket_mb = -1 })
        fails("value", { "'bucket_mb' is 0; it takes the MiB of a bucket, above 0 and up to 1e+06" }, yoke.DistributedDataParallel, layer, { group = group, bucket_mb = 0 })
        fails("value", { "'compression' is 'fp8'" }, yoke.DistributedDataParallel, layer, { group = group, compression = "fp8" })
        fails("value", { "unknown option 'buckets'" }, yoke.DistributedDataParallel, layer, { group = group, buckets = 1 })
        local ddp = yoke.DistributedDataParallel(layer, { group = group })
        fails("value", { "set_weight", "'n' is 0" }, ddp.set_weight, ddp, 0)
        fails("type", { "set_weight", "'n'" }, ddp.set_weight, ddp, "3")
        local _, problem = pcall(function() ddp:set_weight(0) end)
        assert(problem.where:find("parallel_spec", 1, true), problem.where) -- the script's line, not the binding's
        layer.extra = yoke.ones({ 2 }):requires_grad_()
        layer.weight:requires_grad_(false)
        ddp(yoke.ones { 1, 3 }):sum():backward() -- a group of 1 reduces no gradients, so it checks no parameters
        assert(layer.bias.grad and group:barrier())
        ddp:close()
        layer:close()
    end)
end)

describe("measure_shares", function()
    it("tells who is quicker", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local function work() for _ = 1, group.rank == 0 and 1000 or 3000000 do end end
            local shares = assert(yoke.comm.measure_shares(work, group))
            assert(math.abs(shares[1] + shares[2] - 1) < 1e-12 and shares[1] > shares[2])
        end, 2))
        local group <close> = group_of_one()
        assert.same({ 1.0 }, comm.measure_shares(function() end, group))
        fails("type", { "'step' is 5" }, comm.measure_shares, 5, group)
        fails("type", { "'group'" }, comm.measure_shares, print)
    end)
end)
