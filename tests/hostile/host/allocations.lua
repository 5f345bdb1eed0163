-- Each allocation of libyoke fails once, from Lua: an error each time, the host program lives, no memory leaks, the
-- next call works. libfail_alloc.so must be preloaded (fail_alloc.c).
local path = assert(os.getenv("YOKE_TEST_FAIL_ALLOC"))
local arm = assert(package.loadlib(path, "fail_alloc_arm_lua"))
local disarm = assert(package.loadlib(path, "fail_alloc_disarm_lua"))
local yoke = require("yoke")

local x = yoke.ones({48, 48})

local works = {}
function works.open_and_choose()
    yoke.device("cpu")
    yoke.explain("auto:min_free=1MiB")
end
function works.ops()
    assert((x + x):sum():item() == 2 * 48 * 48)
    yoke.cat({yoke.softmax(yoke.matmul(x, x), -1), x}, 0)
end
function works.backward()
    local w = yoke.ones({48, 48}):requires_grad_(true)
    yoke.relu(yoke.matmul(x, w)):sum():backward()
    assert(w.grad)
end
function works.step()
    local w = yoke.ones({48, 48}):requires_grad_(true)
    local optimizer = yoke.optim.Adam({w}, {lr = 0.1})
    yoke.matmul(x, w):sum():backward()
    optimizer:step()
end
function works.inventory()
    yoke.inventory()
end

local function collect()
    collectgarbage()
    collectgarbage()
end

local names = {"open_and_choose", "ops", "backward", "step", "inventory"}
for _, name in ipairs(names) do
    local work = works[name]
    work()
    local n, failed = 0, true
    while failed do
        n = n + 1
        collect()
        local live, bytes = yoke.live_tensor_count(), yoke.memory_allocated()
        arm(n)
        local done, problem = pcall(work)
        failed = disarm()
        collect()
        assert(done or (failed and tostring(problem):find("memory")), ("%s, allocation %d: %s"):format(name, n, tostring(problem)))
        assert(yoke.live_tensor_count() == live, ("%s, allocation %d: a tensor stays"):format(name, n))
        assert(yoke.memory_allocated() == bytes, ("%s, allocation %d: memory stays"):format(name, n))
        work()
    end
    print(("%s: %d allocations"):format(name, n - 1))
end
print("1 passed")
