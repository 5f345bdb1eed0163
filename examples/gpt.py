"""Trains a GPT on the bytes of a text, or on the tokens of a file, and lets it write.

    python gpt.py [--amp bf16] [--steps 300] [--text FILE] [--seed 0] [--threads N] [--losses] … (--help lists all)
    python gpt.py --preset gpt2 --tokens FILE --amp bf16

The text is the GNU General Public License, which every Debian has. A file of tokens has a number of 16 bits, its lower
byte first, for each, and nothing else. The preset gpt2 is GPT-2's network of 124 million parameters. gpt.lua does the
same, and gives the same losses bit for bit. With --save FOLDER each goes on from what the other has left in the folder.
"""

import argparse
import sys
import time

import yoke
from saved_run import SavedRun
from yoke import nn

AMP = {"off": None, "bf16": yoke.bfloat16, "f16": yoke.float16}
PRESETS = {"small": {"layers": 6, "width": 256, "heads": 4, "context": 256, "vocabulary": 256, "tied": False},
           "gpt2": {"layers": 12, "width": 768, "heads": 12, "context": 1024, "vocabulary": 50304, "tied": True}}
RANGES = {"threads": (0, float("inf")), "sample": (0, float("inf")), "temperature": (0, float("inf")), "vocabulary": (256, 2**16),
          **dict.fromkeys(("layers", "width", "heads", "context", "batch", "steps"), (1, float("inf")))}
BEGUN_WITH = ("amp", "batch", "context", "heads", "layers", "lr", "seed", "steps", "text", "tied", "vocabulary", "width")  # constant for a run


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default, meaning in [
            ("device", "auto", '"auto", "cpu", "cuda:1" …'), ("threads", 0, "CPU threads (0: all that are granted)"),
            ("seed", 0, "seed of the weights, the batches and the written text"), ("batch", 8, "pieces of text in a step"),
            ("steps", 300, "steps of training"), ("lr", 1e-3, "the largest learning rate"),
            ("sample", 200, "bytes or tokens to write at the end"), ("temperature", 0.8, "randomness of the written text; 0: always the likeliest byte"),
            ("top-k", 20, "number of likeliest bytes from which a byte is drawn"),
            ("prompt", "You may ", "beginning of the written text"), ("text", "/usr/share/common-licenses/GPL-3", "the file to learn")]:
        parser.add_argument(f"--{name}", type=type(default), default=default, help=meaning)
    parser.add_argument("--preset", choices=PRESETS, default="small", help="the network's size, if the next five options do not give it")
    for name, meaning in [("layers", "transformer blocks"), ("width", "numbers for each byte or token"), ("heads", "attention heads in a block"),
                          ("context", "bytes or tokens that the network sees at once"), ("vocabulary", "number of different tokens, 256 or more")]:
        parser.add_argument(f"--{name}", type=int, help=f"{meaning} ({PRESETS['small'][name]}; gpt2: {PRESETS['gpt2'][name]})")
    parser.add_argument("--tokens", metavar="FILE", help="file of tokens of 16 bits, to learn in place of a text; the written text is then numbers")
    parser.add_argument("--amp", choices=AMP, default="off", help="mixed precision; f16 with a scaled loss")
    parser.add_argument("--checkpoint", type=read_policy, default="off",
                        help="results that backward recomputes: off, full or matmul of each block; or a memory budget, 0.5 or 2GiB")
    parser.add_argument("--losses", action="store_true", help="print the loss of every step, in hexadecimal")
    parser.add_argument("--save", metavar="FOLDER", help="folder in which the run is saved; a new start continues from there")
    parser.add_argument("--every", type=int, metavar="N", help="steps from one save to the next (100)")
    return parser


def read_options(arguments=None):
    options = make_parser().parse_args(arguments)
    for name, value in PRESETS[options.preset].items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    options.kinds = options.vocabulary if options.tokens else 256  # number of token kinds
    for name, (least, most) in {**RANGES, "top-k": (1, options.kinds)}.items():
        value = getattr(options, name.replace("-", "_"))
        if not least <= value <= most:
            allowed = f"at least {least}" if most == float("inf") else f"{least} to {most}"
            sys.exit(f"--{name} is {value}; it must be {allowed}")
    if not options.prompt:
        sys.exit("--prompt is ''; it must have one byte or more, because the written text follows the prompt")
    return options


def read_policy(text):
    """Returns off, full, matmul, or a yoke.MemoryBudget."""
    if text in ("off", "full", "matmul"):
        return text
    try:
        return yoke.MemoryBudget(text)
    except yoke.ValueError:
        raise argparse.ArgumentTypeError(f"--checkpoint is '{text}'; it must be off, full, matmul, or a budget such as 0.5 or 2GiB") from None


def read_file(path, option):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        sys.exit(f"{error}\nName another file with --{option}.")


def load(path, context):
    """Returns the bytes of a file as indices on the current device."""
    text = read_file(path, "text")
    if len(text) <= context:
        sys.exit(f"{path} has {len(text)} bytes; it must have more than --context {context}")
    return yoke.tensor(list(text), dtype=yoke.int64)


def load_tokens(path, context, vocabulary):
    """Returns the tokens of a file, each two bytes, the lower byte first, as indices on the current device."""
    text = read_file(path, "tokens")
    if len(text) % 2 or len(text) // 2 <= context:
        sys.exit(f"{path} has {len(text)} bytes; it must have two bytes for each token, and more tokens than --context {context}")
    halves = yoke.tensor(memoryview(text), dtype=yoke.int32)
    tokens = halves[::2] + halves[1::2] * 256
    largest = tokens.amax().item()
    if largest >= vocabulary:
        sys.exit(f"{path} has the token {largest}; it must be below --vocabulary {vocabulary}")
    return tokens


def content(text, items):
    """Returns a description by which texts differ, independent of the file's place."""
    return f"of {text.numel} {items} with the sum {(text * (yoke.arange(text.numel) + 1)).sum().item()}"


class GPT(nn.Module):
    """Makes the network. With `tied` the head has the weights of the bytes (or tokens)."""

    def __init__(self, layers, width, heads, context, vocabulary=256, tied=False):
        self.context = context
        self.byte, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(nn.TransformerBlock(width, heads, causal=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.byte.weight
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:  # weights of the residual stream start smaller in deeper networks
                deep = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if deep else 0.02)

    def forward(self, index):
        x = self.byte(index) + self.place(yoke.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x, hand_on=True)
        return self.head(self.norm(*x)[1])


def draw_batch(text, batch, context):
    """Returns pieces of the text [batch, context], and the next byte after each of their bytes [batch * context]."""
    starts = yoke.randint(0, text.numel - context, (batch, 1))
    pieces = text.index_select(0, (starts + yoke.arange(context + 1)).reshape(-1)).reshape((batch, context + 1))
    return pieces[:, :-1], pieces[:, 1:].reshape(-1)


def make_optimizer(net, lr, steps):
    matrices = [p for p in net.parameters() if p.ndim == 2]
    others = [p for p in net.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = yoke.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))
    return optimizer, yoke.optim.schedule.cosine(optimizer, steps, min_lr=0.1 * lr, warmup_steps=steps // 10)


def make_step(net, text, steps, batch, lr=1e-3, amp="off"):
    """Returns a function that trains a step, and the parts changed by a step, by their names.

    The function returns the loss as a tensor, because a number would wait for the device.
    """
    optimizer, schedule = make_optimizer(net, lr, steps)
    scaler = yoke.GradScaler(enabled=amp == "f16")

    def step():
        x, target = draw_batch(text, batch, net.context)
        with yoke.autocast(AMP[amp], enabled=amp != "off"):
            logits = net(x)
            loss = yoke.cross_entropy(logits.reshape((-1, logits.shape[-1])), target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        yoke.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        return loss.detach()

    return step, {"net": net, "optimizer": optimizer, "schedule": schedule, "scaler": scaler}


def train(net, text, o, saved):
    """Returns the loss of each step."""
    train_step, parts = make_step(net, text, o.steps, o.batch, o.lr, o.amp)
    losses = yoke.zeros(o.steps)
    for step in saved.steps(o.steps, {**parts, "losses": losses}):
        losses[step] = loss = train_step()
        show_progress(step + 1, o.steps, loss)
    return losses.tolist()


@yoke.no_grad()
def write(net, text, o):
    """Returns `text` [length] and o.sample more bytes, each drawn from the likeliest by Gumbel's trick, as a list."""
    for _ in range(o.sample):
        logits = net(text[-net.context:].unsqueeze(0))[0, -1, :o.kinds]
        values, kinds = yoke.topk(logits, o.top_k)
        if o.temperature > 0:
            values = values / o.temperature - yoke.log(-yoke.log(yoke.rand(o.top_k)))
        best = values.argmax()
        text = yoke.cat([text, kinds.index_select(0, best.reshape(1))])
    return text.tolist()


def show_progress(step, steps, loss):
    """Shows the progress: a bar on a terminal, ten lines elsewhere."""
    if sys.stderr.isatty():
        bar = "#" * (40 * step // steps)
        print(f"\r[{bar:40}] {step}/{steps}  loss {loss.item():.3f}", end="\n" * (step == steps), file=sys.stderr)
    elif step % max(steps // 10, 1) == 0:
        print(f"step {step}: loss {loss.item():.4f}", file=sys.stderr)


def main():
    o = read_options()
    yoke.set_device(o.device)
    yoke.set_num_threads(o.threads)
    yoke.manual_seed(o.seed)
    text = load_tokens(o.tokens, o.context, o.vocabulary) if o.tokens else load(o.text, o.context)
    net = GPT(o.layers, o.width, o.heads, o.context, o.vocabulary, o.tied)
    for module in [net] if isinstance(o.checkpoint, yoke.MemoryBudget) else net.blocks:
        module.checkpoint_(o.checkpoint if o.checkpoint != "off" else False)
    begun_with = {**{name: getattr(o, name) for name in BEGUN_WITH}, "text": content(text, "tokens" if o.tokens else "bytes")}
    saved = SavedRun("gpt", o.save, o.every, begun_with)
    start = time.perf_counter()
    losses = train(net, text, o, saved)
    seconds = time.perf_counter() - start
    print(f"device: {yoke.current_device()} ({yoke.current_device().name}), {yoke.get_num_threads()} threads, amp {o.amp}")
    print(f"tokens/s: {(o.steps - saved.first) * o.batch * o.context / seconds:.0f}")
    print(f"peak memory: {yoke.max_memory_allocated() / 2**20:.1f} MiB")
    print(f"loss: {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps")
    if o.losses:
        print("losses:", *(loss.hex() for loss in losses))
    if o.tokens:
        print("tokens:", *write(net, text[:1].to(yoke.int64), o))
    else:
        print("text:", bytes(write(net, yoke.tensor(list(o.prompt.encode())), o)).decode(errors="replace"))


if __name__ == "__main__":
    try:
        main()
    except yoke.Error as error:
        sys.exit(str(error))
