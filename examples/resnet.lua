-- Trains a residual network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.
--
--     lua5.4 resnet.lua [--depth 18|50|152] [--width 16] [--image-size 28] [--device auto] [--amp off|bf16|f16]
--                       [--epochs 3] [--threads N] [--seed 0] [--limit N] [--losses] [--save FOLDER] [--every 100]
--
-- resnet.py does the same, explains the options, and gives the same losses bit for bit. With --save each program
-- continues a run of the other from the folder.
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local fashion = require "fashion"
local yoke = require "yoke"
local nn = yoke.nn

local BLOCKS = { [18] = { 2, 2, 2, 2 }, [50] = { 3, 4, 6, 3 }, [152] = { 3, 8, 36, 3 } }
local SIDE = 28 -- side of the pictures
local MOST_SIDE = 4096

-- Returns layers that bring x to the block's size, empty if the size is the same.
local function passing(channels, out, stride)
    if channels == out and stride == 1 then return nn.Sequential() end
    return nn.Sequential(nn.Conv2d(channels, out, 1, { stride = stride, bias = false }), nn.BatchNorm2d(out))
end

-- Two convolutions of 3 x 3 beside what passes by.
local BasicBlock = nn.Module:extend("BasicBlock")
BasicBlock.growth = 1 -- factor of the channels

function BasicBlock:init(channels, width, stride)
    self.conv1 = nn.Conv2d(channels, width, 3, { stride = stride, padding = 1, bias = false })
    self.bn1 = nn.BatchNorm2d(width, { relu = true })
    self.conv2 = nn.Conv2d(width, width, 3, { padding = 1, bias = false })
    self.bn2 = nn.BatchNorm2d(width, { relu = true })
    self.downsample = passing(channels, width, stride)
end

function BasicBlock:forward(x)
    local y = self.bn1(self.conv1(x))
    return self.bn2(self.conv2(y), self.downsample(x))
end

-- A convolution of 3 x 3 between two of 1 x 1, beside what passes by.
local Bottleneck = nn.Module:extend("Bottleneck")
Bottleneck.growth = 4

function Bottleneck:init(channels, width, stride)
    self.conv1 = nn.Conv2d(channels, width, 1, { bias = false })
    self.bn1 = nn.BatchNorm2d(width, { relu = true })
    self.conv2 = nn.Conv2d(width, width, 3, { stride = stride, padding = 1, bias = false })
    self.bn2 = nn.BatchNorm2d(width, { relu = true })
    self.conv3 = nn.Conv2d(width, 4 * width, 1, { bias = false })
    self.bn3 = nn.BatchNorm2d(4 * width, { relu = true })
    self.downsample = passing(channels, 4 * width, stride)
end

function Bottleneck:forward(x)
    local y = self.bn1(self.conv1(x))
    y = self.bn2(self.conv2(y))
    return self.bn3(self.conv3(y), self.downsample(x))
end

-- Pictures of another size, by repeating pixels.
local function blown_up(x, side)
    if side == SIDE then return x end
    local nearest = {}
    for i = 0, side - 1 do nearest[i + 1] = i * SIDE // side end
    nearest = yoke.tensor(nearest)
    return x:index_select(2, nearest):index_select(3, nearest)
end

-- Takes pictures [N, 784], and gives a number for each of ten kinds.
local ResNet = nn.Module:extend("ResNet")

function ResNet:init(depth, width, side)
    local block, is_large = depth == 18 and BasicBlock or Bottleneck, side > SIDE
    self.side = side
    self.conv1 = is_large and nn.Conv2d(1, width, 7, { stride = 2, padding = 3, bias = false })
        or nn.Conv2d(1, width, 3, { padding = 1, bias = false })
    self.bn1 = nn.BatchNorm2d(width, { relu = true })
    self.maxpool = is_large and nn.MaxPool2d(3, { stride = 2, padding = 1 }) or nn.Sequential()
    local channels = width
    for i, count in ipairs(BLOCKS[depth]) do
        local layer, own = {}, width << (i - 1)
        for j = 1, count do
            layer[j] = block(channels, own, i > 1 and j == 1 and 2 or 1)
            channels = own * block.growth
        end
        self["layer" .. i] = nn.Sequential(table.unpack(layer))
    end
    self.avgpool = nn.AdaptiveAvgPool2d(1)
    self.fc = nn.Linear(channels, 10)
    self:apply(function(module)
        if module.class_name == "Conv2d" then nn.init.kaiming_normal_(module.weight, { mode = "fan_out", nonlinearity = "relu" }) end
    end)
end

function ResNet:forward(x)
    x = blown_up(x:reshape { -1, 1, SIDE, SIDE }, self.side)
    x = self.maxpool(self.bn1(self.conv1(x)))
    x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
    return self.fc(self.avgpool(x):reshape { x.shape[1], -1 })
end

local function descend(parameters, steps)
    local optimizer = yoke.optim.SGD(parameters, { lr = 0.1, momentum = 0.9, weight_decay = 5e-4, nesterov = true })
    return optimizer, yoke.optim.schedule.one_cycle(optimizer, 0.2, steps)
end

fashion.try(function()
    local options = fashion.read_options {
        { "depth", 18, 1, "layers with weights: 18, 50 or 152" }, { "width", 16, 1, "channels of the first layers" },
        { "image-size", SIDE, SIDE, "height and width of the pictures" } }
    if not BLOCKS[options.depth] then fashion.fail(("--depth is %d; it must be 18, 50 or 152"):format(options.depth)) end
    options.side = options["image-size"]
    if options.side > MOST_SIDE then fashion.fail(("--image-size is %d; it must be at most %d"):format(options.side, MOST_SIDE)) end
    fashion.run("resnet", options, function() return ResNet(options.depth, options.width, options.side) end, { "depth", "width", "side" }, descend)
end)
