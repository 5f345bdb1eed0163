-- yoke.comm: wrong arguments, and the state after coalesce.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local fails, it = support.fails, support.leak_free(it)
local comm = yoke.comm

local function group_of_one() return assert(comm.init { backend = "cpu", rank = 0, world_size = 1 }) end

describe("an argument that is none is told by its name, in", function()
    it("methods of groups", function()
        local group <close> = group_of_one()
        local x = yoke.ones { 2 }
        for _, case in ipairs {
            { "monitored_barrier", "timeout", "x" }, { "monitored_barrier", "timeout", "5" }, { "monitored_barrier", "timeout" },
            { "shrink", "timeout", {} }, { "shrink", "timeout", false }, { "abort", "reason", {} }, { "dump", "path", {} }, { "dump", "path" },
            { "split", "color", "a" }, { "split", "color" }, { "split", "key", 0, false }, { "empty", "shape", "ab" }, { "empty", "shape" },
            { "empty", "shape", 2.5 }, { "empty", "dtype", 2, 5 }, { "all_reduce", "t", 5 },
            { "gather", "out", 5, x, 0 }, { "scatter", "t", x, 5, 0 } } do
            fails("type", { case[1] .. ": ", "'" .. case[2] .. "'" }, group[case[1]], group, table.unpack(case, 3))
        end
        for _, case in ipairs { { "split", "color", 1 << 40 }, { "broadcast", "root", x, "0" }, { "broadcast", "root", x },
            { "send", "dst", x, 1.5 }, { "recv", "src", x, -1 }, { "shrink", "timeout", 0 }, { "shrink", "timeout", -1 },
            { "monitored_barrier", "timeout", 0 / 0 }, { "all_reduce", "op", x, 5 } } do
            fails("value", { case[1] .. ": ", "'" .. case[2] .. "'" }, group[case[1]], group, table.unpack(case, 3))
        end
        fails("value", { "reduce", "'op' is not an option", "'max'" }, group.all_reduce, group, x, { op = "max" })
        fails("value", { "reduce: ", "'async'", "async_op", "reduce_dtype" }, group.all_reduce, group, x, { async = true })
        fails("value", { "all_reduce: ", "'reduce_dtype'", "'flaot32'", "float32" }, group.all_reduce, group, x, { reduce_dtype = "flaot32" })
        x:close()
    end)

    it("init", function()
        for name, wrong in pairs { timeout = "5", init_timeout = {}, rank = "0", world_size = 1.5, backend = 5, init_method = 5, store = 5 } do
            fails("type", { "init: ", "'" .. name .. "'" }, comm.init, { rank = 0, world_size = 1, [name] = wrong })
        end
        for name, wrong in pairs { timeout = 0, init_timeout = -1, rank = 1 << 40, world_size = 1 << 40 } do
            local given = { rank = 0, world_size = 1 }
            given[name] = wrong
            fails("value", { "init: ", "'" .. name .. "'" }, comm.init, given)
        end
        fails("type", "options are 5", comm.init, 5)
    end)

    it("hang, coalesce and spawn", function()
        fails("type", { "hang: ", "'paths'" }, comm.hang, 5)
        fails("value", { "hang: ", "'paths'" }, comm.hang)
        fails("type", { "coalesce: ", "'fn'", "5" }, comm.coalesce, 5)
        fails("type", { "coalesce: ", "'fn'" }, comm.coalesce)
        fails("type", { "spawn: ", "'n'" }, yoke.spawn, function() end, "1")
        fails("type", { "spawn: ", "'args'" }, yoke.spawn, function() end, 1, 5)
        fails("value", { "spawn: ", "'args'", "n = 'x'" }, yoke.spawn, function() end, 1, { n = "x" })
    end)
end)

describe("coalesce", function()
    -- Returns whether the group coalesces no more: a call is then done when wait() returns.
    local function is_over(group)
        local x = yoke.ones { 2 }
        local work = assert(group:all_reduce(x, { async_op = true }))
        work:wait(30)
        local done = work:done()
        x:close()
        return done
    end

    it("refuses what is wanted at once", function()
        local group <close> = group_of_one()
        local calls = {
            split = function() return group:split(0) end,
            empty = function() return group:empty(2) end,
            shrink = function() return group:shrink() end,
            monitored_barrier = function() return group:monitored_barrier(1) end,
            measure_shares = function() return comm.measure_shares(print, group) end,
        }
        assert(comm.coalesce(function()
            for name, call in pairs(calls) do fails("state", { name .. ": ", "coalesce" }, call) end
        end))
        assert.same({ 1.0 }, comm.measure_shares(function() end, group))
    end)

    it("refuses a function that yields, and leaves nothing coalescing", function()
        local group <close> = group_of_one()
        local x = yoke.ones { 2 }
        local thread = coroutine.create(function()
            comm.coalesce(function()
                group:all_reduce(x)
                coroutine.yield()
            end)
        end)
        local fine, problem = coroutine.resume(thread)
        assert.is_false(fine)
        assert.equal("state", problem.code)
        assert.truthy(problem.message:find("yielded", 1, true), problem.message)
        thread = nil
        collectgarbage()
        assert.is_true(is_over(group))
        x:close()
    end)

    it("closes what a function that yields or raises has open", function()
        local closed = 0
        local function counted() return setmetatable({}, { __close = function() closed = closed + 1 end }) end
        fails("state", "yielded", comm.coalesce, function()
            local one <close> = counted()
            coroutine.yield()
        end)
        local fine, problem = pcall(comm.coalesce, function()
            local one <close> = counted()
            error("no more", 0)
        end)
        assert.same({ 2, false, "no more" }, { closed, fine, problem })
    end)

    it("drops all where an error has left an inner one, and is over then", function()
        local group <close> = group_of_one()
        local x = yoke.ones { 2 }
        local before, behind
        fails("state", "an error left an inner scope", comm.coalesce, function()
            before = assert(group:all_reduce(x, { async_op = true }))
            assert.is_false(pcall(comm.coalesce, error, "inner"))
            behind = assert(group:all_reduce(x, { async_op = true }))
        end)
        for _, work in ipairs { before, behind } do
            local fine, problem = work:wait()
            assert.is_nil(fine)
            assert.equal("cancelled", problem.code)
        end
        assert.is_true(is_over(group))
        assert.is_true(comm.coalesce(function() assert(group:all_reduce(x)) end))
        x:close()
    end)
end)
