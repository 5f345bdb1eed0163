-- Trains a small network on Fashion-MNIST: 60,000 pictures of clothes, ten kinds.
--
--     lua5.4 fashion_mnist.lua [--device auto] [--amp off|bf16|f16] [--epochs 3] [--threads N] [--seed 0] [--limit N]
--                              [--losses] [--save FOLDER] [--every 100]
--
-- fashion_mnist.py and fashion_mnist.c do the same, and give the same losses bit for bit. With --save each program
-- continues a run of the others from the folder, as if the run had never stopped.
package.path = (arg[0]:match "^.*/" or "") .. "?.lua;" .. package.path
local fashion = require "fashion"
local nn = require "yoke".nn

local function make_net()
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
end

fashion.try(function() fashion.run("fashion_mnist", fashion.read_options(), make_net) end)
