-- States in files, in Lua: tables come back unchanged. The error about an unsavable value names the value's place.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local function kind(value)
    local mark = getmetatable(value)
    return mark and mark.__name
end

--- Calls with the path of a file that is removed behind.
local function with_file(use)
    local path = os.tmpname()
    local ok, why = pcall(use, path)
    os.remove(path)
    if not ok then error(why, 0) end
end

local function again(value, options)
    local back
    with_file(function(path)
        local work = assert(yoke.save(path, value))
        assert.is_true(work:done() and work:wait())
        back = assert(yoke.load(path, options))
    end)
    return back
end

--- A file of a header and data.
local function write(path, header, data)
    local file = assert(io.open(path, "wb"))
    file:write(string.pack("<s8", header), data or "")
    file:close()
end

local function bits(x) return string.pack(">d", x) end

describe("a state in a file", function()
    it("has every plain value as it was", function()
        for _, value in ipairs { 0, -1, 3, 3.0, -0.0, 0.1, 1e22, 5e-324, math.huge, -math.huge, math.maxinteger, math.mininteger } do
            local back = again { value, { x = value } }
            assert.equal(math.type(value), math.type(back[1]))
            assert.equal(bits(value), bits(back[1]))
            assert.equal(value, back[2].x)
        end
        assert.equal(bits(0 / 0), bits(again(0 / 0)))
        for _, text in ipairs { "", "ü𝄞", "\0\1\31\127", '"\\/', "$tensor", ("x"):rep(100000) } do
            assert.equal(text, again(text))
            assert.same({ [text] = { text } }, again { [text] = { text } })
        end
        assert.is_true(again(true))
        assert.is_false(again { x = false }.x)
        assert.equal(yoke.none, again(yoke.none))
        assert.equal(yoke.none, again { yoke.none, 1 }[1])
    end)

    it("tells lists from dicts", function()
        assert.same({ 1, { 2, { 3 } } }, again { 1, { 2, { 3 } } })
        assert.is_nil(kind(again { 1, 2 }))
        assert.equal("yoke.list", kind(again(yoke.list {})))
        assert.is_nil(kind(again {}))
        assert.equal("yoke.dict", kind(again(yoke.dict { "a", "b" })))
        local keys = { [-1] = "a", [5] = "b", ["5"] = "c", [""] = "d", ["a.b"] = {}, [math.maxinteger] = 1 }
        assert.same(keys, again(keys))
        assert.equal("c", again(again(keys))["5"])
        local marked = again(again { x = yoke.dict { 1 }, y = yoke.list {}, z = {} })
        assert.same({ "yoke.dict", "yoke.list" }, { kind(marked.x), kind(marked.y) })
        assert.is_nil(kind(marked.z))
        assert.same({ [2] = "b" }, again { [2] = "b" })
    end)

    it("has tensors, and one in two places as one", function()
        local x <close> = yoke.tensor { { 1., 2. }, { 3., 4. } }
        local none <close> = yoke.zeros({ 0, 3 }, { dtype = "bool" })
        local turned <close> = x.T
        local back = again { x = x, list = { x, turned }, none = none }
        assert.is_true(rawequal(back.x, back.list[1]))
        assert.same({ { 1., 3. }, { 2., 4. } }, back.list[2]:tolist())
        assert.same({ 0, 3 }, back.none.shape)
        assert.equal("bool", back.none.dtype)
        local alone = again(x)
        assert.same(x:tolist(), alone:tolist())
        for _, each in ipairs { back.x, back.list[2], back.none, alone } do each:close() end
    end)

    it("has the state of what has one", function()
        local object = { state_dict = function() return { n = 3, list = { 1 } } end }
        assert.same({ object = { n = 3, list = { 1 } } }, again { object = object })
        local net = yoke.nn.Linear(2, 3)
        local back = again { net = net }
        assert.same(net.weight:tolist(), back.net.weight:tolist())
        back.net.weight:close()
        back.net.bias:close()
    end)

    it("loads by name, as copies, in another dtype", function()
        with_file(function(path)
            local x <close> = yoke.ones { 2 }
            local n <close> = yoke.ones({ 2 }, { dtype = "int64" })
            assert(yoke.save(path, { net = { x = x }, n = n, step = 3 }, { metadata = { who = "me" } }))
            local function names(options)
                local found = {}
                for name, each in pairs(assert(yoke.load(path, options))) do
                    found[#found + 1] = name .. " " .. each.dtype
                    each:close()
                end
                table.sort(found)
                return table.concat(found, ", ")
            end
            assert.equal("n int64, net.x float32", names { names = "" })
            assert.equal("net.x float32", names { names = "net.", mmap = false })
            assert.equal("n int64", names { names = function(name) return name == "n" end })
            assert.equal("n int64, net.x bfloat16", names { names = "", dtype = "bfloat16", device = "cpu" })
            assert.equal("", names { names = function() return false end })
            local info = assert(yoke.load_info(path))
            assert.same({ who = "me" }, info.metadata)
            assert.is_true(info.has_tree)
            assert.same({ 2 }, info.tensors["net.x"].shape)
            assert.equal("int64", info.tensors.n.dtype)
            fails("type", { "load", "names", "a prefix or a function" }, yoke.load, path, { names = 3 })
            fails("type", { "load", "int64" }, yoke.load, path, { dtype = "int64" })
            fails("value", { "load", "'nmaes'" }, yoke.load, path, { nmaes = "x" })
            local raised, why = pcall(yoke.load, path, { names = function() error("on purpose", 0) end })
            assert.is_false(raised)
            assert.equal("on purpose", why)
        end)
    end)

    it("is a set of files where it has more bytes than one is to have", function()
        local folder = os.tmpname()
        assert(os.remove(folder))
        assert(os.execute("mkdir " .. folder))
        local path = folder .. "/model.safetensors"
        local a <close> = yoke.arange(1000, { dtype = "float32" })
        local b <close> = yoke.ones { 500 }
        local function kind() return assert(yoke.load_info(path)).kind end
        for _, most in ipairs { 4000, "4KB", "3.9 KiB" } do
            assert(yoke.save(path, { a = a, b = b, step = 3 }, { max_shard = most, metadata = { who = "me" } }))
            local info = assert(yoke.load_info(folder))
            assert.equal("set", info.kind)
            assert.same({ who = "me" }, info.metadata)
            assert.truthy(info.tensors.a.file:match("^model%-%x+%-0000%d%-of%-00002%.safetensors$"))
            assert.equal(2, (function()
                local count = 0
                for _ in pairs(info.files) do count = count + 1 end
                return count
            end)())
            for _, place in ipairs { path, folder, path .. ".index.json" } do
                local found = assert(yoke.load(place))
                assert.equal(3, found.step)
                assert.same(a:tolist(), found.a:tolist())
                assert.same(b:tolist(), found.b:tolist())
                found.a:close()
                found.b:close()
            end
        end
        fails("value", { "save", "max_shard", "'5XB'", "5GiB" }, yoke.save, path, { a = a }, { max_shard = "5XB" })
        fails("value", { "save", "max_shard", "'0'" }, yoke.save, path, { a = a }, { max_shard = 0 })
        fails("type", { "save", "max_shard" }, yoke.save, path, { a = a }, { max_shard = {} })
        assert.equal("set", kind())
        assert(yoke.save(path, { a = a }))
        assert.equal("file", kind())
        assert(os.remove(path))
        local none, why = yoke.load(folder)
        assert.is_nil(none)
        assert.equal("checkpoint", why.code)
        assert(os.remove(folder))  -- the folder is empty: all files of all sets are gone
    end)

    it("is mapped privately and saved where it came from", function()
        with_file(function(path)
            local x <close> = yoke.arange(1000)
            assert(yoke.save(path, { x = x }))
            local back = assert(yoke.load(path))
            back.x:fill_(7)
            local fresh = assert(yoke.load(path))
            assert.same(x:tolist(), fresh.x:tolist())
            assert(yoke.save(path, back))
            assert.same(x:tolist(), fresh.x:tolist())
            local after = assert(yoke.load(path))
            assert.equal(7, after.x[999]:item())
            for _, each in ipairs { back, fresh, after } do each.x:close() end
        end)
    end)
end)

describe("what no state has", function()
    local function refused(value, code, parts) fails(code, parts, yoke.save, "/nowhere/file", value) end

    it("is refused by its place", function()
        refused({ a = { print } }, "type", { "save", "state['a'][1]", "function" })
        refused({ [1.5] = 1 }, "type", { "state has the key 1.5" })
        refused({ a = { [true] = 1 } }, "type", { "state['a'] has the key" })
        refused({ a = "\xff" }, "value", { "state['a']", "UTF-8" })
        refused({ ["\xff"] = 1 }, "value", { "state has a key that is not UTF-8" })
        refused({ a = setmetatable({}, {}) }, "type", { "state['a']" })
        refused({ a = io.stdout }, "type", { "state['a']" })
        refused(yoke.list { a = 1 }, "value", { "a list with the key 'a'" })
        refused({ __metadata__ = yoke.ones { 1 } }, "value", { "__metadata__" })
        local closed = yoke.ones { 1 }
        closed:close()
        refused({ a = { closed } }, "closed", { "state['a'][1]" })
        local loop = {}
        loop.inner = { loop }
        refused(loop, "value", { "state['inner'][1]", "contains itself" })
        local object = {}
        object.state_dict = function() return { me = object } end
        refused(object, "value", { "state['me']['me']", "64 deep" })
        for says, state in pairs { ["a list"] = { 1, 2 }, ["0"] = 0, ["a table"] = object, ["a function"] = print } do
            refused({ a = { state_dict = function() return state end } }, "type",
                { ("state['a'] has a state_dict() that returns %s; it must return a dict or a tensor"):format(says) })
        end
        refused({ a = { state_dict = function() return yoke.list {} end } }, "type", { "returns a list" })
        fails("type", { "metadata", "strings" }, yoke.save, "/nowhere/file", {}, { metadata = { a = 1 } })
        fails("value", { "'yoke.tree'" }, yoke.save, "/nowhere/file", {}, { metadata = { ["yoke.tree"] = "" } })
    end)

    it("is what lies more than 64 deep", function()
        local function nested(value, depth)
            for i = 1, depth do value = i % 2 == 0 and { value } or { a = value } end
            return value
        end
        assert.same(nested(1, 64), again(nested(1, 64)))
        for _, depth in ipairs { 65, 66, 1000 } do refused(nested(1, depth), "value", { "64 deep" }) end
        local shared = nested(1, 40)
        assert.same({ shared, nested(shared, 23) }, again { shared, nested(shared, 23) })
        refused({ shared, nested(shared, 24) }, "value", { "save", "state[2]", "64 deep" })
    end)
end)

describe("a file that cannot be", function()
    it("loaded gives nil and why", function()
        for _, read in ipairs { yoke.load, yoke.load_info } do
            local value, why = read "/nowhere/file"
            assert.is_nil(value)
            assert.equal("io", why.code)
            assert.equal(2, why.native_code)
            assert.truthy(why.message:find("/nowhere/file", 1, true))
            with_file(function(path)
                for header, says in pairs { ["[]"] = "does not begin with '{'", ["{}{}"] = "not JSON", ["{}\0"] = "not JSON",
                    ['{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}'] = "tensor 'x' takes 8 bytes" } do
                    write(path, header, header:find "x" and "1234" or "")
                    value, why = read(path)
                    assert.is_nil(value)
                    assert.equal("checkpoint", why.code)
                    assert.truthy(why.message:find(path .. ": ", 1, true) and why.message:find(says, 1, true), why.message)
                end
            end)
        end
    end)

    it("saved gives nil and why, and leaves the former one", function()
        local work, why = yoke.save("/nowhere/file", {})
        assert.is_nil(work)
        assert.equal("io", why.code)
        assert.equal(2, why.native_code)
        with_file(function(path)
            assert(yoke.save(path, { 1 }))
            work, why = yoke.save(path .. "/more", { 2 })
            assert.is_nil(work)
            assert.equal(20, why.native_code)
            assert.same({ 1 }, yoke.load(path))
        end)
    end)

    it("read for a dtype that Yoke has not lists it all the same", function()
        with_file(function(path)
            write(path, '{"x":{"dtype":"U32","shape":[1],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}', "12345")
            assert.equal("U32", yoke.load_info(path).tensors.x.dtype)
            local _, why = yoke.load(path)
            assert.truthy(why.message:find("tensor 'x' is U32", 1, true), why.message)
            local rest = assert(yoke.load(path, { names = "y" }))
            assert.same({ ("5"):byte() }, rest.y:tolist())
            rest.y:close()
        end)
    end)
end)

describe("objects in a file", function()
    it("go on from it", function()
        local function make()
            local x = yoke.tensor({ 1., 2. }, { requires_grad = true })
            return x, yoke.optim.AdamW({ x }, { lr = 0.5 }), yoke.optim.EMA({ x }, { decay = 0.5 })
        end
        local function step(x, optimizer, ema)
            x.grad = yoke.ones { 2 }
            optimizer:step()
            ema:update()
        end
        local x, optimizer, ema = make()
        local y, other, average = make()
        local schedule, fresh = yoke.optim.schedule.step(optimizer, 1), yoke.optim.schedule.step(other, 3)
        step(x, optimizer, ema)
        schedule:step()
        local state = again { optimizer = optimizer, ema = ema, schedule = schedule, rng = yoke.get_rng_state() }
        assert.equal("yoke.tuple", kind(state.optimizer.param_groups[1].betas))
        other:load_state_dict(state.optimizer)
        average:load_state_dict(state.ema)
        fresh:load_state_dict(state.schedule)
        yoke.no_grad(function() y:copy_(x) end)
        local drawn = yoke.rand({ 3 }):tolist()
        yoke.set_rng_state(state.rng)
        assert.same(drawn, yoke.rand({ 3 }):tolist())
        assert.same(schedule:state_dict(), fresh:state_dict())
        assert.equal(optimizer.param_groups[1].lr, other.param_groups[1].lr)
        step(x, optimizer, ema)
        step(y, other, average)
        assert.same(x:tolist(), y:tolist())
        assert.same(ema:state_dict().averages[1]:tolist(), average:state_dict().averages[1]:tolist())
        for _, each in ipairs { optimizer, ema, other, average } do each:close() end
    end)
end)

describe("a file of another format", function()
    it("is named as what it is, with what to write", function()
        local path = os.tmpname()
        for begin, parts in pairs {
            ["\x93NUMPY\1\0"] = { "an array of NumPy (.npy)", "numpy.load(FILE)" },
            ["PK\3\4" .. ("\0"):rep(22) .. "\x10\0\0\0archive/data.pkl"] = { "PyTorch (torch.save)", "yoke.compat.torch.serialization" },
            ["PK\3\4" .. ("\0"):rep(22) .. "\5\0\0\0w.npy"] = { "NumPy (.npz)" },
        } do
            local file = assert(io.open(path, "wb"))
            file:write(begin, ("\0"):rep(64))
            file:close()
            for _, call in ipairs { yoke.load, yoke.load_info } do
                local none, problem = call(path)
                assert.is_nil(none)
                assert.equal("checkpoint", problem.code)
                for _, part in ipairs(parts) do assert.truthy(problem.message:find(part, 1, true)) end
            end
        end
        os.remove(path)
    end)
end)
