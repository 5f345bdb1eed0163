-- The library itself from Lua: devices, memory, configuration, the log, errors, several coroutines.
local yoke = require "yoke"
local read_at_once = package.loaded["yoke.nn"] or package.loaded["yoke.optim"]
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

describe("the module", function()
    it("reads layers and optimizers at their first use, and tells of them", function()
        assert.is_nil(read_at_once)
        assert.is_nil(yoke.nothing)
        assert.is_nil(yoke[nil])
        local told = {}
        for name, value in pairs(yoke) do told[name] = value end
        assert.equal(yoke.nn, told.nn)
        assert.equal(require "yoke.optim", told.optim)
        assert.equal("function", type(told.GradScaler))
        assert.equal("table", type(yoke.data))
        yoke.data = false -- a script's own value
        for name, value in pairs(yoke) do told[name] = value end
        assert.is_false(told.data)
        yoke.data = nil
        assert.equal("table", type(yoke.data))
    end)
end)

describe("devices", function()
    it("are found by spec, index, and themselves; one device is one value", function()
        local cpu = assert(yoke.device("cpu"))
        assert.same({ "cpu", 0, "cpu" }, { cpu.kind, cpu.index, tostring(cpu) })
        assert.equal(cpu, yoke.device("cpu"))
        assert.equal(cpu, yoke.device(cpu))
        assert.equal(cpu, yoke.devices("cpu")[1])
        assert.is_string(cpu.name)
        assert.is_true(cpu.total_memory >= cpu.free_memory)
        assert.is_true(yoke.device_count("cpu") == 1 and yoke.is_available("cpu"))
        assert.equal("", yoke.why_unavailable("cpu"))
        cpu:synchronize()
        yoke.synchronize()
        yoke.synchronize("cpu")
        fails("value", "'speed'", function() return cpu.speed end)
    end)

    it("that cannot be used are nil and an error that says why", function()
        local device, err = yoke.device("cuda:77")
        assert.is_nil(device)
        assert.equal("unavailable", err.code)
        assert.is_true(#err.message > 0)
        device, err = yoke.device("abacus")
        assert.is_nil(device)
        assert.equal("value", err.code)
        assert.truthy(err.message:find("abacus", 1, true))
        if not yoke.is_available("cuda") then assert.is_true(#yoke.why_unavailable("cuda") > 0) end
        fails("type", "device", yoke.device, {})
        fails("value", "abacus", yoke.device_count, "abacus")
    end)

    it("say what they support", function()
        local cpu = yoke.device("cpu")
        assert.is_true(cpu:supports("float16") and cpu:supports("int8", "compute"))
        assert.is_false(cpu:supports("float32", "tensor_cores"))
        assert.equal(io.open("/proc/cpuinfo"):read("a"):find(" avx512_bf16", 1, true) ~= nil,
            cpu:supports("bfloat16", "tensor_cores"))
        fails("value", { "wings", "tensor_cores" }, cpu.supports, cpu, "float32", "wings")
        fails("type", "dtype", cpu.supports, cpu)
    end)

    it("can be made current", function()
        local before = yoke.current_device()
        yoke.set_device("cpu")
        assert.equal(yoke.device("cpu"), yoke.current_device())
        assert.equal(yoke.device("cpu"), yoke.zeros({ 1 }).device)
        assert.equal(yoke.device("cpu"), yoke.device(0))
        assert.is_nil((yoke.device(77)))
        fails("type", "device", yoke.set_device, nil)
        yoke.set_device(before)
    end)
end)

describe("memory", function()
    it("is counted", function()
        local before = yoke.memory_allocated("cpu")
        local x = yoke.zeros({ 1 << 18 }, { device = "cpu" })
        assert.is_true(yoke.memory_allocated("cpu") >= before + (1 << 20))
        assert.is_true(yoke.max_memory_allocated("cpu") >= yoke.memory_allocated("cpu"))
        assert.is_true(yoke.memory_reserved("cpu") >= yoke.memory_allocated("cpu"))
        assert.is_true(yoke.max_memory_reserved("cpu") >= yoke.memory_reserved("cpu"))
        assert.equal(yoke.memory_reserved("cpu") - yoke.memory_allocated("cpu"), yoke.memory_cached("cpu"))
        x:close()
        assert.equal(before, yoke.memory_allocated("cpu"))
        yoke.reset_peak_memory_stats("cpu")
        assert.equal(before, yoke.max_memory_allocated("cpu"))
        yoke.empty_cache()
        local free, total = yoke.mem_get_info("cpu")
        assert.is_true(free <= total)
    end)

    it("is told in PyTorch's keys", function()
        yoke.reset_accumulated_memory_stats()
        local x <close> = yoke.ones { 100 }
        local stats = yoke.memory_stats "cpu"
        assert.equal(yoke.memory_allocated "cpu", stats["allocated_bytes.all.current"])
        assert.equal(1, stats["allocation.small_pool.allocated"])
        assert.is_true(stats.fragmentation >= 0 and stats.fragmentation <= 1)
    end)

    it("is told with an error of it", function()
        local ok, err = pcall(yoke.zeros, { 2 ^ 45 | 0 })
        assert.is_false(ok)
        assert.equal("oom", err.code)
        assert.equal(2 ^ 47 | 0, err.details.requested)
        assert.equal("cpu", err.details.device)
        assert.is_nil(select(2, pcall(yoke.zeros, { -1 })).details)
    end)

    it("changes the allocator's settings that a text names", function()
        local before = yoke.get_alloc_conf()
        yoke.set_alloc_conf "garbage_collection_threshold:0.5"
        assert.equal("expandable_segments:True,garbage_collection_threshold:0.5,ask_fences:False", yoke.get_alloc_conf())
        fails("value", { "set_alloc_conf: there is no setting 'ask_fence'", "did you mean 'ask_fences'?" }, yoke.set_alloc_conf, "ask_fence:True")
        yoke.set_alloc_conf(before)
    end)

    it("caching can be switched off", function()
        local caching = yoke.is_caching()
        yoke.set_caching(false)
        assert.is_false(yoke.is_caching())
        yoke.set_caching(caching)
        assert.equal(caching, yoke.is_caching())
        fails("type", "boolean", yoke.set_caching, 1)
    end)

    it("that only garbage holds is given back without being asked", function()
        local megabytes = 256
        local before = yoke.memory_allocated("cpu")
        yoke.reset_peak_memory_stats("cpu")
        for _ = 1, megabytes do yoke.empty({ 1 << 20 }, "uint8", "cpu") end
        assert.is_true(yoke.max_memory_allocated("cpu") - before < (megabytes << 20) // 2)
    end)

    -- Memory that only the record keeps until backward() must be freed then, not in a later collection. The script
    -- runs in its own process: the size of the Lua heap determines how often the collector runs.
    local function peak_of_training(heap_megabytes)
        local script = support.temporary_file(([[
            local yoke = require "yoke"
            local heap = {}
            for i = 1, %d << 10 do heap[i] = ("x"):rep(1000) .. i end
            local leaf = yoke.ones({ 1 << 18 }, { requires_grad = true })
            local function step()
                local y = leaf
                for _ = 1, 128 do y = (y * y):relu() + y end
                y:sum():backward()
            end
            for _ = 1, 3 do step() end
            io.write(yoke.max_memory_allocated("cpu") >> 20)
        ]]):format(heap_megabytes))
        local pipe = assert(io.popen("lua5.4 " .. script .. " 2>&1"))
        local output = pipe:read "a"
        pipe:close()
        os.remove(script)
        return assert(tonumber(output), output)
    end

    it("of one step of training is given back before the next needs it", function()
        local needed = 2 * 128 -- a MiB for each of y and relu's result, which the record keeps
        for _, heap_megabytes in ipairs { 0, 8 } do
            local peak = peak_of_training(heap_megabytes)
            assert.is_true(peak <= needed + needed // 2, heap_megabytes .. " MiB of heap: " .. peak)
        end
    end)

    it("that runs out is an error, and the program goes on", function()
        local err = fails("oom", "", yoke.empty, { 1 << 40, 1 << 10 }, "uint8", "cpu")
        assert.is_true(#err.message > 0)
        assert.same({ 0.0 }, yoke.zeros({ 1 }):tolist())
        fails("value", "more elements than memory", yoke.empty, { 1 << 40, 1 << 40 })
        fails("value", "-1", yoke.empty, { -1 })
    end)

    -- Process with little address space; a sanitizer needs more to start.
    if not (os.getenv "LD_PRELOAD" or ""):find "asan" then
        it("that garbage holds is collected before an op gives up", function()
            local script = support.temporary_file [[
                local yoke = require "yoke"
                yoke.set_num_threads(1)
                collectgarbage("stop")
                for i = 1, 64 do yoke.empty({ 256 << 20 }, "uint8", "cpu") end
                io.write("done")
            ]]
            local pipe = assert(io.popen("ulimit -v 4000000; exec lua5.4 " .. script .. " 2>&1"))
            local output = pipe:read "a"
            pipe:close()
            os.remove(script)
            assert.equal("done", output)
        end)
    end
end)

describe("backends", function()
    local function product()
        local x <close> = yoke.full({ 1, 1 }, 1 + 2 ^ -12)
        local y <close> = yoke.ones({ 1, 1 })
        local z <close> = x:matmul(y)
        return z:item()
    end

    it("say whether TF32 is allowed, which the CPU has no use for", function()
        assert.is_false(yoke.backends.allow_tf32)
        yoke.backends.allow_tf32 = true
        assert.is_true(yoke.backends.allow_tf32)
        assert.equal(1 + 2 ^ -12, product())
        yoke.backends.allow_tf32 = false
        assert.is_false(yoke.backends.allow_tf32)
    end)

    it("refuse what is no setting or no boolean", function()
        fails("type", { "allow_tf32", "boolean" }, function() yoke.backends.allow_tf32 = 1 end)
        fails("value", { "'allow_tf23'", "allow_tf32" }, function() yoke.backends.allow_tf23 = true end)
        fails("value", "'cutlass'", function() return yoke.backends.cutlass end)
        fails("value", "cudnn", function() yoke.backends.cudnn = true end)
        assert.is_false(yoke.backends.allow_tf32)
    end)

    it("say what cuDNN may do", function()
        local cudnn = yoke.backends.cudnn
        local first = { enabled = true, benchmark = false, benchmark_limit = 10, deterministic = false,
            workspace_limit = 256 << 20 }
        local other = { enabled = false, benchmark = true, benchmark_limit = 0, deterministic = true,
            workspace_limit = math.maxinteger }
        for name, value in pairs(first) do
            assert.equal(value, cudnn[name])
            cudnn[name] = other[name]
            assert.equal(other[name], cudnn[name])
            cudnn[name] = value
        end
    end)

    it("give the same bits in each run if they are asked to", function()
        assert.is_false(yoke.are_deterministic_algorithms_enabled())
        yoke.use_deterministic_algorithms(true)
        assert.is_true(yoke.are_deterministic_algorithms_enabled())
        assert.is_false(yoke.backends.cudnn.deterministic)
        fails("type", { "use_deterministic_algorithms", "'mode'", "boolean" }, function()
            yoke.use_deterministic_algorithms(1)
        end)
        assert.is_true(yoke.are_deterministic_algorithms_enabled())
        yoke.use_deterministic_algorithms(false)
        assert.is_false(yoke.are_deterministic_algorithms_enabled())
    end)

    it("refuse what is no setting of cuDNN's, or no value of one", function()
        local cudnn = yoke.backends.cudnn
        fails("type", { "enabled", "boolean" }, function() cudnn.enabled = 1 end)
        fails("type", { "benchmark_limit", "integer" }, function() cudnn.benchmark_limit = 1.5 end)
        fails("value", "workspace_limit is -1", function() cudnn.workspace_limit = -1 end)
        fails("value", { "'enable'", "the settings are enabled" }, function() cudnn.enable = true end)
        fails("value", "'enable'", function() return cudnn.enable end)
        fails("value", "the settings are enabled", function() return cudnn[1] end)
        fails("value", "'version'", function() cudnn.version = 1 end)
        assert.is_true(cudnn.enabled)
        assert.equal(256 << 20, cudnn.workspace_limit)
    end)

    it("say why cuDNN cannot serve", function()
        local cudnn = yoke.backends.cudnn
        if yoke.is_available("cuda") then return end
        assert.is_nil(cudnn.version())
        assert.equal(yoke.why_unavailable("cuda"), cudnn.why_unavailable())
        cudnn.enabled = false
        assert.is_truthy(cudnn.why_unavailable():find("switched off", 1, true))
        cudnn.enabled = true
    end)
end)

describe("errors", function()
    it("are objects with code, message, device and call, and read as text with a line", function()
        local err = fails("index", "axis 5", yoke.softmax, yoke.zeros({ 2 }), 5)
        assert.is_string(err.device)
        assert.truthy(err.call:find("op_invoke", 1, true) or err.call:find("softmax", 1, true))
        local _, located = pcall(function() yoke.softmax(yoke.zeros({ 2 }), 5) end)
        assert.truthy(tostring(located):find "runtime_spec.lua:%d+: softmax: ")
    end)

    it("point to the script and not into Yoke's own", function()
        local layer = yoke.nn.Linear(3, 2)
        local _, err = pcall(function() layer(yoke.zeros({ 1, 4 })) end)
        assert.equal("value", err.code)
        assert.truthy(tostring(err):find("runtime_spec.lua", 1, true), tostring(err))
    end)
end)

describe("the log", function()
    -- Only 1 kind of message can appear at any time with this binding: the warning about a variable set after first
    -- use.
    it("waits in a queue until poll() runs the callback", function()
        assert.equal(0, yoke.poll())
        yoke.set_log_callback(function() end)
        assert.equal(0, yoke.poll())
        yoke.set_log_callback(nil)
        fails("type", "fn", yoke.set_log_callback, "loud")
    end)
end)

describe("configuration", function()
    it("is read and checked", function()
        yoke.zeros({ 1 })
        fails("value", "YOKE_NONSENSE", yoke.config_set, "YOKE_NONSENSE", "1")
        fails("value", "YOKE_NONSENSE", yoke.config_get, "YOKE_NONSENSE")
        fails("type", "key", yoke.config_get, 5)
        local value = yoke.config_get("YOKE_LOG")
        assert.is_true(value == nil or type(value) == "string")
    end)

    it("of threads and seeds gives the same numbers again", function()
        local threads = yoke.get_num_threads()
        yoke.set_num_threads(1)
        assert.equal(1, yoke.get_num_threads())
        yoke.manual_seed(7)
        local first = yoke.randn({ 5 }):tolist()
        yoke.manual_seed(7)
        assert.same(first, yoke.randn({ 5 }):tolist())
        yoke.set_num_threads(threads)
        fails("value", "-1", yoke.set_num_threads, -1)
        fails("type", "seed", yoke.manual_seed, "seven")
        fails("type", "1.5", yoke.manual_seed, 1.5)
    end)

    it("tells versions", function()
        assert.truthy(yoke.version:match "^%d+%.%d+%.%d+$")
        assert.truthy(yoke.build_info():find("cpu", 1, true))
    end)

    it("survives a shutdown", function()
        yoke.shutdown(5)
        assert.same({ 1.0 }, yoke.ones({ 1 }):tolist())
        fails("value", "-1", yoke.shutdown, -1)
    end)
end)
