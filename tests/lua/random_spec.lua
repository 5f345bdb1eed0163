-- Random states, generators and the timer, as Lua has them.
local yoke = require "yoke"
local support = dofile "tests/lua/support.lua"
local it, fails = support.leak_free(it), support.fails

local function drawn(n) return yoke.rand({ n or 5 }):tolist() end

describe("a random state", function()
    it("that is put back gives the same numbers again", function()
        yoke.manual_seed(11)
        drawn(7)
        local state = yoke.get_rng_state()
        assert.same({ 16 }, state.shape)
        assert.equal("uint8", state.dtype)
        local first = drawn()
        yoke.manual_seed(12)
        yoke.set_rng_state(state)
        assert.same(first, drawn())
        fails("value", { "set_rng_state", "get_rng_state" }, yoke.set_rng_state, yoke.zeros({ 16 }))
        fails("value", "state", yoke.set_rng_state, "state")
    end)
end)

describe("a generator", function()
    it("is the stream of its seed and leaves the thread's own alone", function()
        yoke.manual_seed(5)
        local want = { drawn(), drawn() }
        yoke.manual_seed(99)
        local own = { drawn(), drawn() }
        yoke.manual_seed(99)
        local generator = yoke.Generator("cpu", 5)
        do
            local _ <close> = generator:use()
            assert.same(want[1], drawn())
        end
        assert.same(own[1], drawn())
        assert.same(want[2], generator:use(drawn, 5))
        assert.same(own[2], drawn())
    end)

    it("is where a single op draws", function()
        yoke.manual_seed(5)
        local want = { drawn(), yoke.zeros(3):normal_():tolist(), drawn() }
        yoke.manual_seed(99)
        local own = drawn()
        yoke.manual_seed(99)
        local generator = yoke.Generator("cpu", 5)
        assert.same(want[1], yoke.rand({ 5 }, { generator = generator }):tolist())
        assert.same(want[2], yoke.zeros(3):normal_({ generator = generator }):tolist())
        assert.same(own, drawn())
        do -- in its scope the thread draws from the generator
            local _ <close> = generator:use()
            assert.same(want[3], yoke.rand({ 5 }, { generator = generator }):tolist())
        end
        fails("type", { "rand", "'generator'", "yoke.Generator" }, yoke.rand, { 5 }, { generator = 5 })
        fails("type", { "rand", "'generator'" }, yoke.rand, { 5 }, { generator = { 5 } })
        fails("type", { "Generator", "'stream'" }, require "yoke.core".stream_place, 5)
    end)

    it("stands in a state", function()
        local generator, path = yoke.Generator("cpu", 5), os.tmpname()
        generator:use(drawn)
        assert(yoke.save(path, { rng = generator }))
        local want, other = generator:use(drawn), yoke.Generator("cpu", 6)
        other:load_state_dict(assert(yoke.load(path)).rng)
        os.remove(path)
        assert.same(want, other:use(drawn))
    end)

    it("keeps and takes back its state inside its scope and outside", function()
        local generator = yoke.Generator(nil, -3)
        local state, want
        generator:use(function()
            drawn(3)
            state = generator:get_state()
            want = drawn()
            generator:set_state(state)
            assert.same(want, drawn())
        end)
        assert.same(want, generator:set_state(state):use(drawn))
        assert.same(generator:manual_seed(4):get_state():tolist(), yoke.Generator(nil, 4):get_state():tolist())
    end)

    it("is left by an error, and is refused where it is in use", function()
        local generator = yoke.Generator()
        yoke.manual_seed(8)
        local own = drawn()
        yoke.manual_seed(8)
        assert.is_false(pcall(generator.use, generator, function() error "on purpose" end))
        assert.same(own, drawn())
        generator:use(function() fails("state", "already in use", generator.use, generator) end)
        fails("type", { "seed", "1.5" }, yoke.Generator, "cpu", 1.5)
    end)
end)

describe("the timer", function()
    it("runs a function at least five times and gives median, quartiles' distance and runs", function()
        local count = 0
        local median, iqr, runs = yoke.Timer(function()
            count = count + 1
            yoke.rand({ 1000 })
        end, { seconds = 0, warmup = 2 }):run()
        assert.equal(5, runs)
        assert.is_true(count >= 2 + 1 + 5 and median > 0 and iqr >= 0)
    end)

    it("passes an error of the function on, and refuses what it cannot run", function()
        assert.is_false(pcall(function() yoke.Timer(function() error "on purpose" end):run() end))
        fails("type", { "Timer", "'fn' is 5" }, yoke.Timer, 5)
        fails("value", "-1", yoke.Timer, print, { seconds = -1 })
    end)
end)
