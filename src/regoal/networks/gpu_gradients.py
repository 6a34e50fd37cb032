"""What is around the rounds on a GPU: the weights' gradients and the readout, as Triton kernels.

Gradients of weights are summed in shares S, each by one program, and added up afterwards: always
in the same order. Shapes as in gpu_kernels.py; Q actions, C depths.
"""

import triton
import triton.language as tl

from regoal.networks.gpu_kernels import backward, forward, gathered, mish, mish_slope

__all__ = [
    "backward", "forward", "message_gradients", "readout", "readout_backward", "readout_nodes",
    "update_gradients",
]  # fmt: skip
JOB = tl.constexpr(6)


@triton.jit
def _matrix_gradient(
    partial, at, begin, step, end, tiles, first, count, nodes, arguments, args, x, hidden, winner,
    grad_strongest, grad_hidden, place, last,
    K: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """D rows, of place `place`, of a relation's first or last matrix, and the bias with place 0."""
    W: tl.constexpr = K * D
    WIDE: tl.constexpr = triton.next_power_of_2(W)
    rows, d, cols = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, WIDE)
    total = tl.zeros((D, WIDE), tl.float32)
    bias = tl.zeros((WIDE,), tl.float32)
    for turn in range(begin, end, step):
        layer, atom = (turn // tiles).to(tl.int64), (turn % tiles) * ROWS + rows
        inside = (atom < count)[:, None]
        there = inside & (cols < W)[None, :]
        argument = first + atom[:, None] * K
        base = layer * nodes * D
        line = layer * arguments * D + argument.to(tl.int64) * D
        if last:
            left = mish(tl.load(hidden + line + place * D + d[None, :], mask=inside, other=0.0))
            mine = argument + cols[None, :] // D
            to_node = tl.load(args + mine, mask=there, other=0)
            spot = base + to_node * D + cols[None, :] % D
            won = tl.load(winner + spot, mask=there, other=-1) == mine
            right = tl.load(grad_strongest + spot, mask=there & won, other=0.0)
        else:
            from_node = tl.load(args + argument + place, mask=inside, other=0)
            left = tl.load(x + base + from_node * D + d[None, :], mask=inside, other=0.0)
            right = tl.load(grad_hidden + line + cols[None, :], mask=there, other=0.0)
        total = tl.dot(tl.trans(left), right, total, input_precision=PRECISION)
        bias += tl.sum(right, axis=0)
    to = partial + at + last * (W * W + W)
    spots = (place * D + d[:, None]) * W + cols[None, :]
    tl.store(to + spots, total, mask=(cols < W)[None, :])
    tl.store(to + W * W + cols, bias, mask=(cols < W) & (place == 0))


@triton.jit(do_not_specialize=["rounds", "length"])
def message_gradients(
    partial, ints, x, hidden, winner, grad_strongest, grad_hidden, rounds, length,
    D: tl.constexpr, ARITIES: tl.constexpr, MOST: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of the messages' weights: `partial` [S, length], to be summed over S.

    A program a job (some rows of one matrix) and share S of the atoms and rounds.
    """
    job = ints + tl.load(ints + 9) + tl.program_id(0) * JOB
    at = tl.multiple_of(tl.load(job), 16)
    first, count, arity = tl.load(job + 1), tl.load(job + 2), tl.load(job + 3)
    last, place = tl.load(job + 4), tl.load(job + 5)
    nodes, arguments = tl.load(ints).to(tl.int64), tl.load(ints + 1).to(tl.int64)
    args = ints + tl.load(ints + 2)
    tiles = tl.cdiv(count, ROWS)
    for K in tl.static_range(1, MOST + 1):
        if (ARITIES >> K) & 1:
            if arity == K:
                _matrix_gradient(
                    partial + tl.program_id(1).to(tl.int64) * length, at, tl.program_id(1),
                    tl.num_programs(1), tiles * rounds, tiles, first, count, nodes, arguments,
                    args, x, hidden, winner, grad_strongest, grad_hidden, place, last,
                    K, D, ROWS, PRECISION,
                )  # fmt: skip


@triton.jit(do_not_specialize=["rounds", "length"])
def update_gradients(
    partial, ints, x, strongest, update, normal, grads, grad_update, grad_update_hidden, rounds,
    length,
    D: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of the update's weights and of the norm's, for a share S of all rounds' nodes.

    `partial` [S, length] has what comes after the messages' weights.
    """
    share, shares = tl.program_id(0), tl.num_programs(0)
    lines = tl.load(ints).to(tl.int64) * rounds
    to = partial + share.to(tl.int64) * length - tl.load(ints + 6)
    rows, d, wide = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, 2 * D)
    above, below = tl.zeros((D, 2 * D), tl.float32), tl.zeros((D, 2 * D), tl.float32)
    bias_in, last = tl.zeros((2 * D,), tl.float32), tl.zeros((2 * D, D), tl.float32)
    bias_out = tl.zeros((D,), tl.float32)
    scale, shift = tl.zeros((D,), tl.float32), tl.zeros((D,), tl.float32)
    for turn in range(share, tl.cdiv(lines, ROWS), shares):
        v = (turn * ROWS + rows.to(tl.int64))[:, None]
        there = v < lines
        place, broad = v * D + d[None, :], v * (2 * D) + wide[None, :]
        dh = tl.load(grad_update_hidden + broad, mask=there, other=0.0)
        du = tl.load(grad_update + place, mask=there, other=0.0)
        g = tl.load(grads + place, mask=there, other=0.0)
        message = tl.load(strongest + place, mask=there, other=0.0)
        own = tl.load(x + place, mask=there, other=0.0)
        active = mish(tl.load(update + broad, mask=there, other=0.0))
        above = tl.dot(tl.trans(message), dh, above, input_precision=PRECISION)
        below = tl.dot(tl.trans(own), dh, below, input_precision=PRECISION)
        last = tl.dot(tl.trans(active), du, last, input_precision=PRECISION)
        bias_in += tl.sum(dh, axis=0)
        bias_out += tl.sum(du, axis=0)
        scale += tl.sum(g * tl.load(normal + place, mask=there, other=0.0), axis=0)
        shift += tl.sum(g, axis=0)
    w_in, norm = to + tl.load(ints + 6), to + tl.load(ints + 7)
    w_out = w_in + 4 * D * D + 2 * D
    tl.store(w_in + d[:, None] * (2 * D) + wide[None, :], above)
    tl.store(w_in + (D + d[:, None]) * (2 * D) + wide[None, :], below)
    tl.store(w_in + 4 * D * D + wide, bias_in)
    tl.store(w_out + wide[:, None] * D + d[None, :], last)
    tl.store(w_out + 2 * D * D + d, bias_out)
    tl.store(norm + d, scale)
    tl.store(norm + D + d, shift)


@triton.jit
def _pair(ints, x, rows, D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr):
    """Of some actions their nodes' embeddings and the sums of their objects', [ROWS, D] each."""
    there = rows < tl.load(ints + 11)
    node = tl.load(ints + tl.load(ints + 12) + rows, mask=there, other=0)
    instance = tl.load(ints + tl.load(ints + 13) + rows, mask=there, other=0)
    d = tl.arange(0, D)
    own = tl.load(x + node[:, None] * D + d[None, :], mask=there[:, None], other=0.0)
    ptr, objects = ints + tl.load(ints + 14), ints + tl.load(ints + 15)
    begin = tl.load(ptr + instance, mask=there, other=0)
    end = tl.load(ptr + instance + 1, mask=there, other=0)
    return own, gathered(x, begin, end, objects, D, ROWS, STEP)


@triton.jit
def _readout_hidden(weights, at, own, total, D: tl.constexpr, PRECISION: tl.constexpr):
    d, wide = tl.arange(0, D), tl.arange(0, 2 * D)
    above = tl.load(weights + at + d[:, None] * (2 * D) + wide[None, :])
    below = tl.load(weights + at + (D + d[:, None]) * (2 * D) + wide[None, :])
    h = tl.dot(own, above, input_precision=PRECISION)
    h = tl.dot(total, below, h, input_precision=PRECISION)
    return h + tl.load(weights + at + 4 * D * D + wide)[None, :]


@triton.jit(do_not_specialize=["slots_at"])
def readout(
    weights, ints, x, q, slots_at,
    D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Q-values [C, Q] from the embeddings [., N, D] in C slots; a program a tile and slot."""
    at = tl.multiple_of(tl.load(ints + 10), 16)
    slot = tl.load(ints + slots_at + tl.program_id(1)).to(tl.int64)
    rows, wide = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, 2 * D)
    own, total = _pair(ints, x + slot * tl.load(ints) * D, rows, D, ROWS, STEP)
    h = _readout_hidden(weights, at, own, total, D, PRECISION)
    last = weights + at + 4 * D * D + 2 * D
    value = tl.sum(mish(h) * tl.load(last + wide)[None, :], axis=1) + tl.load(last + 2 * D)
    actions = tl.load(ints + 11)
    tl.store(q + tl.program_id(1).to(tl.int64) * actions + rows, value, mask=rows < actions)


@triton.jit(do_not_specialize=["slots_at", "slots", "length"])
def readout_backward(
    weights, ints, x, grad_q, grad_own, grad_total, partial, slots_at, slots, length,
    D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradients of both halves of the pairs [C, Q, D], and of the readout's weights in shares."""
    share, shares = tl.program_id(0), tl.num_programs(0)
    at, actions = tl.multiple_of(tl.load(ints + 10), 16), tl.load(ints + 11)
    d, wide = tl.arange(0, D), tl.arange(0, 2 * D)
    above = tl.load(weights + at + d[None, :] * (2 * D) + wide[:, None])  # transposed, as below
    below = tl.load(weights + at + (D + d[None, :]) * (2 * D) + wide[:, None])
    last = tl.load(weights + at + 4 * D * D + 2 * D + wide)
    first_above, first_below = tl.zeros((D, 2 * D), tl.float32), tl.zeros((D, 2 * D), tl.float32)
    bias_in, last_grad = tl.zeros((2 * D,), tl.float32), tl.zeros((2 * D,), tl.float32)
    bias_out = tl.zeros((ROWS,), tl.float32)
    tiles = tl.cdiv(actions, ROWS)
    for turn in range(share, tiles * slots, shares):
        number, rows = turn // tiles, (turn % tiles) * ROWS + tl.arange(0, ROWS)
        slot = tl.load(ints + slots_at + number).to(tl.int64)
        own, total = _pair(ints, x + slot * tl.load(ints) * D, rows, D, ROWS, STEP)
        h = _readout_hidden(weights, at, own, total, D, PRECISION)
        place = number.to(tl.int64) * actions + rows
        g = tl.load(grad_q + place, mask=rows < actions, other=0.0)
        last_grad += tl.sum(mish(h) * g[:, None], axis=0)
        bias_out += g
        dh = g[:, None] * last[None, :] * mish_slope(h)
        first_above = tl.dot(tl.trans(own), dh, first_above, input_precision=PRECISION)
        first_below = tl.dot(tl.trans(total), dh, first_below, input_precision=PRECISION)
        bias_in += tl.sum(dh, axis=0)
        to = place[:, None] * D + d[None, :]
        there = (rows < actions)[:, None]
        tl.store(grad_own + to, tl.dot(dh, above, input_precision=PRECISION), mask=there)
        tl.store(grad_total + to, tl.dot(dh, below, input_precision=PRECISION), mask=there)
    to_weights = partial + share.to(tl.int64) * length + at - tl.load(ints + 6)
    tl.store(to_weights + d[:, None] * (2 * D) + wide[None, :], first_above)
    tl.store(to_weights + (D + d[:, None]) * (2 * D) + wide[None, :], first_below)
    tl.store(to_weights + 4 * D * D + wide, bias_in)
    tl.store(to_weights + 4 * D * D + 2 * D + wide, last_grad)
    tl.store(to_weights + 4 * D * D + 4 * D, tl.sum(bias_out, axis=0))


@triton.jit
def readout_nodes(
    ints, grad_own, grad_total, wanted, D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr
):
    """Gradients of the embeddings [C, N, D] from those of the pairs."""
    nodes, actions = tl.load(ints), tl.load(ints + 11)
    lines, d = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, D)
    there = lines < nodes
    number = tl.program_id(1).to(tl.int64)
    about = ints + tl.load(ints + 17) + lines * 3
    action = tl.load(about, mask=there, other=-1)
    instance = tl.load(about + 1, mask=there, other=0)
    times = tl.load(about + 2, mask=there, other=0)
    ptr = ints + tl.load(ints + 16) + instance
    begin = tl.load(ptr, mask=times > 0, other=0)
    end = tl.load(ptr + 1, mask=times > 0, other=0)
    grad_total += number * actions * D
    total = gathered(grad_total, begin, end, ptr, D, ROWS, STEP, False)
    place = (number * actions + action)[:, None] * D + d[None, :]
    own = tl.load(grad_own + place, mask=(there & (action >= 0))[:, None], other=0.0)
    to = (number * nodes + lines)[:, None] * D + d[None, :]
    tl.store(wanted + to, own + total * times[:, None].to(tl.float32), mask=there[:, None])
