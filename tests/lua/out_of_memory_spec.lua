-- Steps before the error "oom": garbage is collected and on_out_of_memory's functions are asked, amid any call.
-- Each test is a process that has 64 MiB left. A sanitizer takes all of the address space.
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local PRELUDE = [[
local yoke = require "yoke"
local optim = require "yoke.optim"
yoke.set_num_threads(1)
local function block(mib) return yoke.zeros { mib * 2 ^ 18 | 0 } end
local function litter(mib) return block(mib).numel end
block(1):close()
local filler = block(yoke.mem_get_info() // 2 ^ 20 - 64)
]]

-- Returns what a script prints on standard output and error. The script must end well.
local function run(script)
    local path = support.temporary_file(PRELUDE .. script)
    local pipe = assert(io.popen(("ulimit -v 800000; exec lua5.4 %s 2>&1"):format(path)))
    local printed = pipe:read "a"
    local ok = pipe:close()
    os.remove(path)
    assert.is_true(ok, printed)
    return printed
end

local describes = (os.getenv "LD_PRELOAD" or ""):find "lib.san" and pending or describe

describes("a request that finds no memory", function()
    it("collects garbage first, also where the script has stopped its collector", function()
        run [[
            collectgarbage "stop"
            litter(40)
            local x = block(40)
            litter(10)
            local y = x[{ { 0, 2 ^ 20 | 0 } }] + 1
            assert(y[3]:item() == 1 and not collectgarbage "isrunning")
        ]]
    end)

    it("does so amid a backward and a step", function()
        run [[
            collectgarbage "stop"
            local p = yoke.full({ 11 * 2 ^ 18 | 0 }, 3.0, { requires_grad = true })
            local loss = (p * p):sum()
            litter(40)
            loss:backward()
            assert(yoke.amin(p.grad):item() == 6)
            loss:close()
            litter(26)
            optim.AdamW({ p }, { lr = 0.5, weight_decay = 0 }):step()
            assert(math.abs(yoke.amax(p):item() - 2.5) < 1e-3)
        ]]
    end)

    it("asks the functions of on_out_of_memory, three times at most", function()
        local printed = run [[
            local held = { block(14), block(14), block(14), block(14) }
            local handle = yoke.on_out_of_memory(function(device, bytes)
                print(device.kind, bytes // 2 ^ 20 | 0, #held)
                table.remove(held):close()
                return true
            end)
            local x = block(40)
            handle:remove()
            handle:remove()
            x:close()
            local y, count = block(40), 0
            local never <close> = yoke.on_out_of_memory(function() count = count + 1; return true end)
            assert(not pcall(block, 40) and count == 3)
        ]]
        assert.equal("cpu\t40\t4\ncpu\t40\t3\ncpu\t40\t2\n", printed)
    end)

    it("asks no function that another one has removed", function()
        local printed = run [[
            local held, second = block(60), nil
            local first = yoke.on_out_of_memory(function() second:remove() end)
            second = yoke.on_out_of_memory(function() print "asked" end)
            collectgarbage()
            assert(not pcall(block, 40))
        ]]
        assert.equal("", printed)
    end)

    it("goes on where a function raises, allocates, or closes the arguments", function()
        local printed = run [[
            warn "@on"
            local a, b, held = block(12), block(12), block(36)
            yoke.on_out_of_memory(function() error "of the function" end)
            yoke.on_out_of_memory(function() yoke.zeros { -1 } end)
            yoke.on_out_of_memory(function()
                assert(not pcall(block, 60))
                a:close()
                b:close()
                held:close()
                return true
            end)
            local x = a + b
            assert(yoke.amax(x):item() == 0 and a:is_closed())
        ]]
        assert.truthy(printed:find("error in a function of on_out_of_memory %(.*of the function%)"))
        assert.truthy(printed:find("error in a function of on_out_of_memory %(.*zeros: .*-1"))
    end)
end)

describe("on_out_of_memory", function()
    it("refuses what is no function", function()
        fails("type", { "on_out_of_memory", "'fn'", "a function" }, require "yoke".on_out_of_memory, 3)
    end)
end)
