"""GPU kernels for the weights' gradients, and for the sums of rows that the readout needs.

The weights' gradients are summed in S shares, each by one program. The shares are then added up in
a fixed order.

Shapes: N nodes, M arguments of all atoms, D embedding size, W = K * D for arity K, C depths.
"""

import triton
import triton.language as tl

from regoal.networks.kernels.gpu.rounds import backward, forward, mish

__all__ = ["backward", "forward", "message_gradients", "row_sums", "update_gradients"]
JOB = tl.constexpr(6)


@triton.jit
def _sum_matrix_gradient(
    partial, at, begin, step, end, tiles, first, count, nodes, arguments, args, x, hidden, winner,
    grad_strongest, grad_hidden, place, last,
    K: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of D rows of one of a relation's two matrices, those of `place`.

    `last` chooses the second matrix. The program of place 0 also computes the bias's gradient.
    """
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
    """Compute gradients of the messages' weights: `partial` [S, length], to be summed over S.

    There is a program for each job (some rows of one matrix) and each share of atoms and rounds.
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
                _sum_matrix_gradient(
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
    """Compute gradients of the update's and the norm's weights, for one share of all nodes."""
    share, shares = tl.program_id(0), tl.num_programs(0)
    lines = tl.load(ints).to(tl.int64) * rounds
    to = partial + share.to(tl.int64) * length
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


@triton.jit(do_not_specialize=["ptr_at", "index_at", "rows", "end"])
def row_sums(x, ints, out, ptr_at, index_at, rows, end, D: tl.constexpr, STEP: tl.constexpr):
    """Compute out[c, r] as the sum of x[c, index[j]] for j in ptr[r] .. ptr[r + 1].

    x is [C, rows, D], and out is [C, end, D].
    """
    row, c = tl.program_id(0), tl.program_id(1).to(tl.int64)
    begin, stop = tl.load(ints + ptr_at + row), tl.load(ints + ptr_at + row + 1)
    step, d = tl.arange(0, STEP), tl.arange(0, D)
    total = tl.zeros((D,), tl.float32)
    for at in range(begin, stop, STEP):
        inside = at + step < stop
        line = tl.load(ints + index_at + at + step, mask=inside, other=0)
        found = tl.load(
            x + (c * rows + line[:, None]) * D + d[None, :], mask=inside[:, None], other=0.0
        )
        total += tl.sum(found, axis=0)
    tl.store(out + (c * end + row) * D + d, total)
