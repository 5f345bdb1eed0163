-- Tensors as Lua values: made, read, indexed, written and closed.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

describe("yoke.tensor", function()
    it("takes its dtype from the highest kind of value", function()
        assert.equal("float32", yoke.tensor({ 1, 2.5 }).dtype)
        assert.equal("int64", yoke.tensor({ 1, 2, true }).dtype)
        assert.equal("bool", yoke.tensor({ true, false }).dtype)
        assert.equal("float32", yoke.tensor({}).dtype)
    end)

    it("takes nested tables of any depth up to 16", function()
        assert.same({ 2, 1, 3 }, yoke.tensor({ { { 1, 2, 3 } }, { { 4, 5, 6 } } }).shape)
        assert.same({}, yoke.tensor(7).shape)
        assert.same({ 2, 0 }, yoke.tensor({ {}, {} }).shape)
        local deep = 1
        for _ = 1, 16 do deep = { deep } end
        assert.equal(16, yoke.tensor(deep).ndim)
        fails("value", "deeper than 16", yoke.tensor, { deep })
    end)

    it("takes dtype, device and requires_grad by place and by name", function()
        local x = yoke.tensor({ 1, 2 }, { dtype = yoke.float64, device = "cpu", requires_grad = true })
        assert.equal("float64", x.dtype)
        assert.is_true(x.requires_grad)
        local y = yoke.tensor({ 1.5, -2.5 }, "int32", "cpu")
        assert.same({ 1, -2 }, y:tolist())
    end)

    it("copies a tensor, cut off from the record", function()
        local x = yoke.tensor({ 1., 2. }, { requires_grad = true })
        local y = yoke.tensor(x)
        assert.is_false(yoke.shares_memory(x, y))
        assert.is_false(y.requires_grad)
        assert.equal("float64", yoke.tensor(x, { dtype = "f64" }).dtype)
    end)

    it("refuses ragged tables and values that are no numbers", function()
        fails("value", { "ragged", "2 items", "not 1" }, yoke.tensor, { { 1, 2 }, { 3 } })
        fails("value", "ragged", yoke.tensor, { { 1 }, 2 })
        fails("value", "ragged", yoke.tensor, { 1, { 2 } })
        fails("type", "string", yoke.tensor, { 1, "2" })
        fails("type", "function", yoke.tensor, print)
        fails("value", { "dtyp", "requires_grad" }, yoke.tensor, { 1 }, { dtyp = "f32" })
        fails("value", "float31", yoke.tensor, { 1 }, "float31")
    end)
end)

describe("a tensor's data", function()
    it("refuses numbers that an integer dtype cannot hold, and truncates those that it can", function()
        fails("value", { "300", "uint8" }, yoke.tensor, { 1, 300 }, { dtype = "uint8" })
        fails("value", { "-1", "uint8" }, yoke.tensor, { { -1 } }, "uint8")
        fails("value", { "2147483648", "int32" }, yoke.tensor, 2147483648, "int32")
        fails("value", { "nan", "int8" }, yoke.tensor, { 0 / 0 }, "int8")
        fails("value", "int64", yoke.tensor, { 2.0 ^ 63 }, "int64")
        assert.same({ 255, 0, 127 }, yoke.tensor({ 255.9, -0.9, 127 }, "uint8"):tolist())
        assert.same({ math.mininteger, math.maxinteger },
            yoke.tensor({ math.mininteger, math.maxinteger }, "int64"):tolist())
    end)

    it("comes back as it went in, in every dtype", function()
        for _, dtype in ipairs { "float64", "float32", "float16", "bfloat16" } do
            assert.same({ { 1.5, -2.0 }, { 0.0, 1024.0 } },
                yoke.tensor({ { 1.5, -2 }, { 0, 1024 } }, dtype):tolist())
        end
        for _, dtype in ipairs { "int64", "int32", "int8", "uint8" } do
            local list = yoke.tensor({ 0, 1, 100 }, dtype):tolist()
            assert.same({ 0, 1, 100 }, list)
            assert.equal("integer", math.type(list[1]))
        end
        assert.same({ true, false }, yoke.tensor({ true, false }):tolist())
        local large = math.maxinteger - 1
        assert.equal(large, yoke.tensor({ large }):item())
    end)

    it("is read row-major through any strides", function()
        local x = yoke.arange(6):reshape({ 2, 3 }):transpose(0, 1)
        assert.is_false(x:is_contiguous())
        assert.same({ { 0, 3 }, { 1, 4 }, { 2, 5 } }, x:tolist())
        assert.equal(string.pack("<i8i8i8i8i8i8", 0, 3, 1, 4, 2, 5), x:tobytes())
    end)

    it("goes through strings of bytes", function()
        local bytes = string.pack("<ffff", 1, 2, 3, 4)
        local x = yoke.frombuffer(bytes, { 2, 2 }, "float32")
        assert.same({ { 1.0, 2.0 }, { 3.0, 4.0 } }, x:tolist())
        assert.equal(x, x:copy_from_string(string.pack("<ffff", 5, 6, 7, 8)))
        assert.same({ { 5.0, 6.0 }, { 7.0, 8.0 } }, x:tolist())
        fails("value", { "12", "16" }, yoke.frombuffer, bytes:sub(1, 12), { 2, 2 }, "float32")
        fails("value", { "8", "16" }, x.copy_from_string, x, "12345678")
        fails("type", "bytes", yoke.frombuffer, 5, { 2 }, "float32")
    end)

    it("gives one value by item()", function()
        assert.equal(2.5, yoke.tensor(2.5):item())
        assert.equal(3, yoke.tensor({ { 3 } }):item())
        assert.is_true(yoke.tensor({ true }):item())
        fails("value", "2 elements", function() yoke.tensor({ 1, 2 }):item() end)
    end)
end)

describe("fields", function()
    it("tell what a tensor is", function()
        local x = yoke.zeros({ 2, 3 })
        assert.same({ 2, 3 }, x.shape)
        assert.same({ 3, 1 }, x.strides)
        assert.same({ 2, 6, 24, 4 }, { x.ndim, x.numel, x.nbytes, x.itemsize })
        assert.is_true(x.is_leaf)
        assert.is_nil(x.grad)
        assert.equal(2, #x)
        assert.equal(x.device, yoke.device("cpu"))
        assert.is_true(x:storage_nbytes() >= 24)
        assert.equal(x:storage_id(), x:view({ 6 }):storage_id())
        assert.is_true(x:data_ptr() ~= 0)
    end)

    it("are refused by name where there are none", function()
        local x = yoke.zeros({ 2 })
        fails("value", "'shap'", function() return x.shap end)
        fails("value", "'shape' cannot be set", function() x.shape = { 3 } end)
        fails("type", "0-dim", function() return #yoke.tensor(1) end)
    end)

    it("that are tables belong to the caller", function()
        local x = yoke.zeros({ 2, 3 })
        x.shape[1] = 7
        assert.same({ 2, 3 }, x.shape)
    end)
end)

describe("indexing", function()
    local function sample() return yoke.arange(12):reshape({ 3, 4 }) end

    it("counts from 0, negative from the end, and gives views", function()
        local x = sample()
        assert.same({ 4, 5, 6, 7 }, x[1]:tolist())
        assert.equal(11, x[-1][-1]:item())
        assert.is_true(yoke.shares_memory(x, x[2]))
        fails("index", { "3", "axis 0" }, function() return x[3] end)
        fails("index", "-4", function() return x[-4] end)
        fails("type", "number 1.5", function() return x[1.5] end)
    end)

    it("takes slices, ellipses and new axes in index()", function()
        local x = sample()
        assert.same({ { 1, 3 }, { 9, 11 } }, x:index({ false, false, 2 }, { 1, false, 2 }):tolist())
        assert.same({ 2, 6, 10 }, x:index("...", 2):tolist())
        assert.same({ 1, 3, 4 }, x:index(yoke.newaxis).shape)
        assert.same({ 8, 9 }, x:index(-1, { 0, 2 }):tolist())
        fails("type", "item", x.index, x, "nothing")
        fails("index", "3 indices", x.index, x, 0, 0, 0)
    end)

    it("writes through", function()
        local x = sample()
        x[0] = 7
        x[1] = yoke.tensor({ 1, 2, 3, 4 })
        x:index(2, { 0, 2 }):fill_(-1)
        assert.same({ { 7, 7, 7, 7 }, { 1, 2, 3, 4 }, { -1, -1, 10, 11 } }, x:tolist())
        fails("value", { "3", "4" }, function() x[0] = yoke.tensor({ 1, 2, 3 }) end)
    end)

    it("takes integer tensors and masks, alone, in tables and in index()", function()
        local x, t = sample(), yoke.tensor
        assert.same({ { 8, 9, 10, 11 }, { 0, 1, 2, 3 } }, x[t { 2, 0 }]:tolist())
        assert.same({ 6, 8 }, x[{ t { 1, -1 }, t { 2, 0 } }]:tolist())
        assert.same({ { 1, 2 }, { 5, 6 } }, x[{ { 0, 2 }, t { 1, 2 } }]:tolist())
        assert.same({ 4, 8 }, x[{ t { 1, 2 }, 0 }]:tolist())
        assert.same({ 9, 10, 11 }, x[yoke.gt(x, 8)]:tolist())
        assert.same({ 4, 6 }, x:index(1, t { true, false, true, false }):tolist())
        assert.same({ 1, 3, 4 }, x[true].shape)
        assert.same({ 0, 3, 4 }, x:index(false).shape)
        assert.same({ { 1, 3 }, { 9, 11 } }, x[{ { false, false, 2 }, { 1, false, 2 } }]:tolist())
        assert.equal(5, x[{ 1, 1 }]:item())
        fails("index", { "index[1] is 3", "use -3 to 2" }, function() return x[t { 0, 3 }] end)
        fails("type", { "item 0", "float32" }, function() return x[t { 0.5 }] end)
        fails("type", "argument 'item' is a function", function() return x[print] end)
    end)

    it("is assigned to by tensors and masks", function()
        local x, t = sample(), yoke.tensor
        x[t { 0, 2 }] = t { 1, 2, 3, 4 }
        x[{ 1, { 0, 2 } }] = 9
        x[{ t { 1, 1 }, t { 2, 3 } }] = t { -1, -2 }
        assert.same({ { 1, 2, 3, 4 }, { 9, 9, -1, -2 }, { 1, 2, 3, 4 } }, x:tolist())
        x[yoke.lt(x, 0)] = 0
        x[t { true, false, false }] = true
        assert.same({ { 1, 1, 1, 1 }, { 9, 9, 0, 0 }, { 1, 2, 3, 4 } }, x:tolist())
        fails("value", { "[3]", "[1, 4]" }, function() x[t { 0 }] = t { 1, 2, 3 } end)
        fails("type", "argument 'value' is a string", function() x[0] = "a" end)
        fails("type", "argument 'value' is nil", function() x[0] = nil end)
    end)

    it("records assignment into what is no leaf", function()
        local x <close> = yoke.tensor({ 1., 2., 3. }, { requires_grad = true })
        local y <close> = yoke.tensor({ 5. }, { requires_grad = true })
        local z = x * 2
        z[yoke.tensor { 1 }] = y
        z:sum():backward()
        assert.same({ 2, 0, 2 }, x.grad:tolist())
        assert.same({ 1 }, y.grad:tolist())
        fails("state", "leaf that requires grad", function() x[yoke.tensor { 1 }] = 0 end)
        fails("state", "view of a leaf that requires grad", function() x[0] = 1 end)
        local w = x * 3
        w[0] = 1
        w:narrow(0, 1, 2):mul_(x:narrow(0, 0, 2))
        w:sum():backward()
        assert.same({ 8, 12, 8 }, x.grad:tolist())
    end)

    it("slices with first, last and step", function()
        local x = yoke.arange(10)
        assert.same({ 2, 4, 6 }, x:slice(0, 2, 8, 2):tolist())
        assert.same({ 7, 8, 9 }, x:slice(0, -3):tolist())
        assert.same({ 9, 6, 3, 0 }, x:slice(0, { step = -3 }):tolist())
    end)
end)

describe("to()", function()
    it("takes a dtype, a device, both, or names", function()
        local x = yoke.tensor({ 1.5, 2.5 })
        assert.equal("int32", x:to("int32").dtype)
        assert.equal("float64", x:to("cpu", "float64").dtype)
        assert.equal("float16", x:to({ dtype = yoke.float16 }).dtype)
        assert.is_true(yoke.shares_memory(x, x:cpu()))
        fails("value", "dtpye", x.to, x, { dtpye = "f32" })
        fails("value", "nowhere", x.to, x, "nowhere")
        fails("unavailable", "cuda", x.to, x, "cuda:77")
    end)
end)

describe("close()", function()
    it("releases at once, and a second time does nothing", function()
        local before = yoke.live_tensor_count()
        local x = yoke.zeros({ 4 })
        assert.equal(before + 1, yoke.live_tensor_count())
        x:close()
        x:close()
        assert.equal(before, yoke.live_tensor_count())
        assert.is_true(x:is_closed())
        assert.equal("tensor(closed)", tostring(x))
    end)

    it("takes from the count what the tape keeps, too", function()
        collectgarbage()
        local before = yoke.live_tensor_count()
        local w = yoke.ones({ 3 }):requires_grad_()
        local y = yoke.exp(w)
        assert.equal(before + 2 + #yoke.saved_tensors(y), yoke.live_tensor_count())
        local z = yoke.exp(y)
        y:close()
        assert.equal(before + 2 + 2, yoke.live_tensor_count())
        z:close()
        w:close()
        assert.equal(before, yoke.live_tensor_count())
    end)

    it("is what a <close> variable does", function()
        local before = yoke.live_tensor_count()
        do
            local x <close> = yoke.zeros({ 4 })
            assert.equal(before + 1, yoke.live_tensor_count())
        end
        assert.equal(before, yoke.live_tensor_count())
    end)

    it("makes every use an error that names the call and the argument", function()
        local x, y = yoke.zeros({ 4 }), yoke.zeros({ 4 })
        x:close()
        fails("closed", { "add", "'x'" }, yoke.add, x, y)
        fails("closed", { "add", "'y'" }, function() return y + x end)
        fails("closed", { "shape" }, function() return x.shape end)
        fails("closed", { "cat" , "closed" }, yoke.cat, { y, x })
        fails("closed", "tolist", x.tolist, x)
        fails("closed", "backward", x.backward, x)
        fails("closed", "index", function() return x[0] end)
    end)
end)

describe("== of tensors", function()
    it("raises, and names what compares", function()
        local a, b = yoke.ones(2), yoke.ones(2)
        local words = { "yoke.eq(a, b)", "yoke.ne(a, b)", ":all():item()", "a:item() == b:item()", "rawequal(a, b)" }
        fails("type", words, function() return a == b end)
        fails("type", words, function() return a ~= b end)
        fails("type", words, function() return yoke.tensor(1) == yoke.tensor(1) end)
        assert.is_true(yoke.eq(a, b):all():item())
    end)

    it("is true of one object, and false of what is no tensor", function()
        local a = yoke.ones(2)
        local same = a
        assert.is_true(a == same and not (a ~= same) and rawequal(a, same))
        for _, other in ipairs { 1, "a", true, {}, a.shape, yoke.device "cpu" } do assert.is_false(a == other) end
        assert.is_false(a == nil or yoke.device "cpu" == a)
        local places = { [a] = "a", [yoke.ones(2)] = "another" }
        assert.equal("a", places[same])
    end)
end)

describe("a shape", function()
    it("shows and joins its numbers", function()
        local x = yoke.zeros(2, 3)
        assert.equal("{2, 3}", tostring(x.shape))
        assert.equal("{}", tostring(yoke.tensor(1).shape))
        assert.equal("{3, 1}", tostring(x.strides))
        assert.equal("shape {2, 3}", "shape " .. x.shape)
        assert.equal("{2, 3} of 6", x.shape .. " of " .. x.numel)
        assert.equal("{2, 3}{2, 3}", x.shape .. x:size())
        assert.equal("2x3", table.concat(x.shape, "x"))
        assert.equal("{2, 3}", ("%s"):format(x.shape))
    end)

    it("compares by value, with lists too", function()
        local x, y = yoke.zeros(2, 3), yoke.ones(2, 3, { dtype = "int64" })
        assert.is_true(x.shape == y.shape and x.shape == { 2, 3 } and { 2, 3 } == x.shape and x.shape == { 2., 3. })
        assert.is_true(x.shape ~= x.T.shape and x.shape ~= { 2 } and x.shape ~= { 2, 3, 1 } and x.shape ~= {})
        assert.is_true(yoke.tensor(1).shape == {} and x.strides == { 3, 1 })
        assert.is_false(x.shape == "{2, 3}" or x.shape == 2)
        assert.same({ 2, 3 }, x.shape)
    end)

    it("stays a list of Lua's", function()
        local shape = yoke.zeros(2, 3).shape
        assert.equal(2, #shape)
        assert.same({ 2, 3 }, { table.unpack(shape) })
        local seen = {}
        for i, each in ipairs(shape) do seen[i] = each end
        assert.same({ 2, 3 }, seen)
        shape[3] = 4
        table.insert(shape, 5)
        assert.equal("{2, 3, 4, 5}", tostring(shape))
        assert.same({ 2, 3, 4, 5 }, yoke.zeros(shape).shape)
        assert.same({ 5, 4 }, yoke.zeros(20):reshape(yoke.zeros(5, 4).shape).shape)
        assert.same({ 2 }, yoke.zeros(2, { dtype = "bool" }):expand(yoke.ones(2).shape).shape)
        assert.equal("{2, a}", tostring(setmetatable({ 2, "a" }, getmetatable(shape))))
    end)

    it("is a list of a state", function()
        local path = os.tmpname()
        local kept = { shape = yoke.zeros(2, 3).shape, none = yoke.tensor(1).shape, also = yoke.list(yoke.zeros(4).shape) }
        assert(yoke.save(path, kept))
        local found = assert(yoke.load(path))
        os.remove(path)
        assert.same({ 2, 3 }, found.shape)
        assert.equal(0, #found.none)
        assert.same({ 4 }, { table.unpack(found.also) })
    end)
end)

describe("a loop that counts from 1", function()
    it("is told at its end that indices count from 0", function()
        local x = yoke.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }
        local words = { "index 3 is out of range", "length 3", "count from 0", "for i = 0, #x - 1 do", "ipairs(x:unbind())" }
        local rows = 0
        fails("index", words, function()
            for _, row in ipairs(x) do rows = rows + row[0]:item() end
        end)
        assert.equal(8, rows)
        fails("index", words, function()
            for i = 1, #x do local _ = x[i] end
        end)
        fails("index", "index 0 is out of range", function() return ipairs(yoke.zeros(0, 2))(yoke.zeros(0, 2), -1) end)
        local sum = 0
        for i = 0, #x - 1 do sum = sum + x[i][0]:item() end
        for _, row in ipairs(x:unbind()) do sum = sum + row[1]:item() end
        assert.equal(21, sum)
        fails("index", "4", function() return x[4] end)
        assert.equal(5, x[-1][0]:item())
    end)

    it("is told so of a tensor without elements or axes too", function()
        local function count(tensor)
            for _ in ipairs(tensor) do end
        end
        fails("index", { "index 1 is out of range for axis 0 of length 0", "count from 0" }, count, yoke.zeros(0, 2))
        fails("index", { "a tensor without axes", "x:item()" }, count, yoke.tensor(1.5))
        fails("index", { "index 2 is out of range for axis 0", "the axis has no elements" }, function() return yoke.zeros(0)[2] end)
    end)
end)
