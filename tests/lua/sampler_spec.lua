-- DistributedSampler of Lua: the examples of each rank.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local fails, it = support.fails, support.leak_free(it)

describe("DistributedSampler", function()
    local Sampler = yoke.data.DistributedSampler

    local function pass(sampler)
        local all = {}
        for index in sampler:indices() do all[#all + 1] = index end
        return all
    end

    it("deals, pads and drops", function()
        local function dealt(rank, given)
            given.rank, given.world_size, given.shuffle = rank, 4, false
            local sampler <close> = Sampler(10, given)
            local all = pass(sampler)
            assert.equal(#all, #sampler)
            return all
        end
        assert.same({ 2, 6, 0 }, dealt(2, {}))
        assert.same({ 2, 6 }, dealt(2, { drop_last = true }))
        assert.same({ 2, 6 }, dealt(2, { pad = false }))
        assert.same({ 1, 5, 9 }, dealt(1, { pad = false }))
    end)

    it("goes on with other ranks", function()
        local seen, state = {}, nil
        for rank = 0, 1 do
            local sampler <close> = Sampler(11, { rank = rank, world_size = 2, pad = false })
            sampler:set_epoch(3)
            local taken = sampler:indices()
            for _ = 1, 2 do seen[#seen + 1] = taken() end
            state = sampler:state_dict()
            assert.same({ epoch = 3, consumed = 4 }, state)
        end
        for rank = 0, 2 do
            local sampler <close> = Sampler(11, { rank = rank, world_size = 3, pad = false })
            sampler:load_state_dict(state)
            for _, index in ipairs(pass(sampler)) do seen[#seen + 1] = index end
        end
        table.sort(seen)
        assert.same({ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, seen)
    end)

    it("refuses what is none", function()
        fails("value", { "'n' is -1" }, Sampler, -1)
        fails("type", { "'n'" }, Sampler, "5")
        fails("value", { "'n' is 9223372036854775807" }, Sampler, math.maxinteger)
        fails("type", { "'shares'" }, Sampler, 5, { rank = 0, world_size = 1, shares = { {} } })
        fails("value", { "'rank' is 2 and 'world_size' is 2" }, Sampler, 5, { rank = 2, world_size = 2 })
        fails("value", { "'shares'", "a list of 1", "2 ranks" }, Sampler, 5, { rank = 0, world_size = 2, shares = { 1 } })
        fails("value", { "'shares' has the sum 1.1" }, Sampler, 5, { rank = 0, world_size = 2, shares = { 0.5, 0.6 } })
        local sampler <close> = Sampler(5)
        fails("value", { "'epoch' is -1" }, sampler.set_epoch, sampler, -1)
        fails("value", { "the data set has 5" }, sampler.load_state_dict, sampler, { epoch = 0, consumed = 6 })
        fails("type", { "load_state_dict" }, sampler.load_state_dict, sampler, 5)
    end)

    it("says of a pass that it was left for another one", function()
        local sampler <close> = Sampler(5, { shuffle = false })
        local function left(leave)
            local take = sampler:indices()
            take()
            leave()
            fails("state", { "before this pass ended" }, take)
        end
        left(function() sampler:indices() end)
        left(function() sampler:set_epoch(1) end)
        left(function() sampler:load_state_dict { epoch = 1, consumed = 3 } end)
        local take = sampler:indices()
        assert.same({ 3, 4 }, { take(), take() })
        assert.is_nil(take())
        assert.equal(5, #pass(sampler))
        assert.is_nil(take())
    end)

    it("regroups in a group", function()
        local sampler <close> = Sampler(5, { rank = 0, world_size = 1 })
        fails("type", { "regroup", "'group' is nil" }, sampler.regroup, sampler, nil)
    end)

    it("is of the default group's rank", function()
        fails("value", { "'rank' is 1", "'world_size' is nil" }, Sampler, 5, { rank = 1 })
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group <close> = assert(yoke.comm.init())
            local sampler <close> = yoke.data.DistributedSampler(10, { shuffle = false })
            assert(#sampler == 5 and sampler:indices()() == group.rank)
        end, 2))
    end)
end)
