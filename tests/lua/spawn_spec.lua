-- yoke.spawn: functions in separate processes, and how their failures reach the caller.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it = support.leak_free(it)

local function refused(code, words, ...)
    local fine, problem = pcall(yoke.spawn, ...)
    assert.is_false(fine)
    assert.equal(code, problem.code)
    for _, word in ipairs(words) do assert.truthy(problem.message:find(word, 1, true), problem.message) end
end

-- Returns the text that a rank has written to the file `path .. rank`, and removes the file.
local function written(path, rank)
    local file = assert(io.open(path .. rank, "r"))
    local text = file:read "a"
    file:close()
    os.remove(path .. rank)
    return text
end

describe("spawn", function()
    it("tells who waits in vain what the other rank's call was refused for", function()
        assert(yoke.spawn(function()
            local yoke = require "yoke"
            local group = assert(yoke.comm.init { backend = "cpu", timeout = 1.0 })
            if group.rank == 1 then
                local is_fine, problem = pcall(group.all_reduce, group, yoke.ones { 1 }, "mean")
                assert(not is_fine and problem.code == "value")
                group:monitored_barrier(20) -- until the group has failed
                return
            end
            local done, problem = group:barrier()
            assert(not done and problem.code == "timeout" and problem.message:find("was refused: all_reduce: argument 'op' is 'mean'", 1, true), tostring(problem))
        end, 2))
    end)

    it("runs a function in ranks of one group, with its arguments", function()
        local path = os.tmpname()
        local given = { path, nil, true, { x = { 1 / 0, -3, 0.1 }, [2] = "a\0\n\"" }, 1 << 62, n = 5 }
        assert.is_true(yoke.spawn(function(name, nothing, truth, all, large)
            local yoke = require "yoke"
            local group = assert(yoke.comm.init())
            local t = yoke.full({ 1 }, group.rank + 1.0)
            assert(group:all_reduce(t))
            local file = assert(io.open(name .. group.rank, "w"))
            file:write(tostring(t:item()), " ", tostring(nothing), " ", tostring(truth), " ", table.concat(all.x, ","), " ",
                #all[2], " ", large)
            file:close()
        end, 2, given))
        for rank = 0, 1 do assert.equal("3.0 nil true inf,-3,0.1 4 4611686018427387904", written(path, rank)) end
        os.remove(path)
    end)

    it("names the rank that fails with its traceback, and ends the others", function()
        local fine, problem = yoke.spawn(function()
            if os.getenv "RANK" == "1" then error "out of data" end
            os.execute "sleep 1000"
        end, 2)
        assert.is_nil(fine)
        assert.equal("comm", problem.code)
        for _, part in ipairs { "spawn: rank 1 (process ", "exit code 1", "out of data", "stack traceback", "spawn_spec.lua" } do
            assert.truthy(problem.message:find(part, 1, true), problem.message)
        end
    end)

    it("tells the signal that ended a rank", function()
        local fine, problem = yoke.spawn(function() os.execute "kill -KILL $PPID; sleep 1000" end, 1)
        assert.is_nil(fine)
        assert.truthy(problem.message:find("signal 9 (SIGKILL)", 1, true), problem.message)
    end)

    it("is ended by Ctrl-C, which the script hears when its ranks have ended", function()
        local script, process = os.tmpname(), os.tmpname()
        local file = assert(io.open(script, "w"))
        file:write [[
            local yoke = require "yoke"
            local fine, problem = pcall(yoke.spawn, function()
                print "ready"
                io.stdout:flush()
                os.execute "exec sleep 1000"
            end, 1)
            print(fine, problem)
        ]]
        file:close()
        local out = assert(io.popen(("sh -c 'echo $$ >%s; exec lua5.4 %s' 2>&1 | { read -r line; echo \"$line\"; kill -INT $(cat %s); cat; }")
            :format(process, script, process)))
        local text = out:read "a"
        out:close()
        os.remove(script)
        os.remove(process)
        assert.truthy(text:match "^%[0%] ready\nfalse\t.*interrupted!\n$", text)
    end)

    it("hands its call over in no file that a killed script would leave", function()
        local name = os.tmpname
        os.tmpname = function() error "a file was made" end
        local fine, problem = pcall(yoke.spawn, function() assert(io.read "a" == "" and io.stdin:seek "cur") end, 1)
        os.tmpname = name
        assert.is_true(fine, problem)
        assert.is_true(problem)
    end)

    it("refuses what other processes cannot have", function()
        local outer = 1
        local loop = {}
        loop.self = { loop }
        refused("value", { "'fn'", "'outer'" }, function() return outer end, 1)
        refused("type", { "'fn' is a function" }, print, 1)
        refused("type", { "'fn' is nil" }, nil, 1)
        refused("type", { "'args' is 3" }, function() end, 1, 3)
        refused("type", { "args[1][\"f\"]", "a function" }, function() end, 1, { { f = print } })
        refused("value", { "contains itself", "args[1][\"self\"][1]" }, function() end, 1, { loop })
        refused("value", { "'n' is 0", "1 to 1024" }, function() end, 0)
        refused("value", { "'n' is 1025" }, function() end, 1025)
    end)
end)
