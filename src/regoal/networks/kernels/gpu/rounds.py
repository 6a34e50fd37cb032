"""The rounds of message passing on a GPU, as Triton kernels that launch.py calls.

They compute the same function as `embed_reference` in rgnn.py. One launch runs all rounds. The
programs stay on the GPU and wait for each other between the phases of a round; launching some
thousand small kernels would take most of the time. In a phase, programs share tiles of atoms or of
nodes.

A maximum of messages is an atomic maximum of integers. The upper half of such an integer orders the
messages, and the lower half holds the argument's number. So neither the result nor the winner of a
tie depends on timing. Sums of floating-point numbers are taken in a fixed order.

Shapes: N nodes, M arguments of all atoms, D embedding size, L rounds, W = K * D numbers of an atom
of arity K. `batch_layout.PackedBatch` describes `ints`. All sizes come from `ints`, because a
kernel is compiled again for other kinds of integer arguments.
"""

import triton
import triton.language as tl

TILE = tl.constexpr(3)
STAGES = tl.constexpr(2)


@triton.jit
def _wait_for_all(counter, times):
    """Wait until all programs have been here `times` times."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="release")
    wanted = times * tl.num_programs(0)
    here = tl.atomic_add(counter, 0, sem="acquire")
    while here < wanted:
        here = tl.atomic_add(counter, 0, sem="acquire")
    tl.debug_barrier()


@triton.jit
def mish(x):
    """Compute x tanh(softplus(x)) = x n / (n + 2), for e = exp(x) and n = e (e + 2)."""
    e = tl.exp(tl.minimum(x, 20.0))
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


@triton.jit
def mish_slope(x):
    """Compute the derivative of `mish`."""
    e = tl.exp(tl.minimum(x, 20.0))
    inverse = 1.0 / (e * (e + 2.0) + 2.0)
    return e * (e + 2.0) * inverse + x * (4.0 * e * (e + 1.0) * inverse * inverse)


@triton.jit
def _make_key(x, row):
    """Make an unsigned integer that is larger for larger x, and for equal x in the first row.

    It is never 0, which stands for no message.
    """
    bits = (x + 0.0).to(tl.uint32, bitcast=True)  # -0 counts as 0
    high = tl.where(bits >> 31 != 0, bits ^ 0xFFFFFFFF, bits | 0x80000000)
    return (high.to(tl.uint64) << 32) | (0xFFFFFFFF - row.to(tl.uint64))


@triton.jit
def _unpack_key(key):
    """Return message and row of a key; 0 and -1 if there is no message."""
    high = (key >> 32).to(tl.uint32)
    bits = tl.where(high >> 31 != 0, high ^ 0x80000000, high ^ 0xFFFFFFFF)
    row = (0xFFFFFFFF - (key & 0xFFFFFFFF)).to(tl.int32)
    none = key == 0
    return tl.where(none, 0.0, bits.to(tl.float32, bitcast=True)), tl.where(none, -1, row)


@triton.jit
def _find_first_tile(begin, pid, programs):
    """Return the first tile from `begin` on that belongs to this program."""
    return begin + (pid + programs - begin % programs) % programs


@triton.jit
def _send_messages(
    weights, args, x, keys, hidden, tile,
    K: tl.constexpr, D: tl.constexpr, WIDEST: tl.constexpr, ROWS: tl.constexpr,
    SAVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute the messages of a tile of atoms; writes `hidden` [M, D] and maxima `keys` [N, D]."""
    W: tl.constexpr = K * D
    WIDE: tl.constexpr = triton.next_power_of_2(W)
    PART: tl.constexpr = min(WIDE, WIDEST * WIDEST // WIDE)
    at = tl.multiple_of(tl.load(tile), 16)
    first, count = tl.load(tile + 1), tl.load(tile + 2)
    rows, cols = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDE)[None, :]
    there = (rows < count) & (cols < W)
    argument = first + rows * K + cols // D
    node = tl.load(args + argument, mask=there, other=0)
    inputs = tl.load(x + node * D + cols % D, mask=there, other=0.0)
    bias_out = tl.load(weights + at + 2 * W * W + W + cols, mask=cols < W, other=0.0)
    out = inputs + bias_out
    deep = tl.arange(0, WIDE)[:, None]
    for begin in tl.range(0, W, PART, num_stages=STAGES):
        part = begin + tl.arange(0, PART)
        inside = part < W
        w_in = tl.load(
            weights + at + deep * W + part[None, :], mask=(deep < W) & inside[None, :], other=0.0
        )
        w_out = tl.load(
            weights + at + W * W + W + part[:, None] * W + cols,
            mask=inside[:, None] & (cols < W), other=0.0,
        )  # fmt: skip
        bias_in = tl.load(weights + at + W * W + part, mask=inside, other=0.0)
        h = tl.dot(inputs, w_in, input_precision=PRECISION) + bias_in[None, :]
        if SAVE:
            place = hidden + first.to(tl.int64) * D + rows * W + part[None, :]
            tl.store(place, h, mask=(rows < count) & inside[None, :])
        out = tl.dot(mish(h), w_out, out, input_precision=PRECISION)
    tl.atomic_max(keys + node * D + cols % D, _make_key(out, argument), mask=there, sem="relaxed")


@triton.jit
def _update_nodes(
    weights, update_at, norm_at, nodes, x, next_x, keys, strongest, winner, update, normal,
    deviation, tile,
    D: tl.constexpr, ROWS: tl.constexpr, SAVE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Update a tile of nodes by their largest messages, and set their `keys` to 0 again."""
    v, d, wide = tile * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, D), tl.arange(0, 2 * D)
    there = v < nodes
    place = v * D + d[None, :]
    key = tl.load(keys + place, mask=there, other=0)
    tl.store(keys + place, tl.zeros_like(key), mask=there)
    message, row = _unpack_key(key)
    own = tl.load(x + place, mask=there, other=0.0)
    w_in = weights + update_at
    w_out = w_in + 4 * D * D + 2 * D
    above = tl.load(w_in + d[:, None] * (2 * D) + wide[None, :])
    below = tl.load(w_in + (D + d[:, None]) * (2 * D) + wide[None, :])
    last = tl.load(w_out + wide[:, None] * D + d[None, :])
    h = tl.dot(message, above, input_precision=PRECISION)
    h = tl.dot(own, below, h, input_precision=PRECISION)
    h += tl.load(w_in + 4 * D * D + wide)[None, :]
    u = tl.dot(mish(h), last, input_precision=PRECISION) + tl.load(w_out + 2 * D * D + d)[None, :]
    centred = u - (tl.sum(u, axis=1) / D)[:, None]
    inverse = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1) / D + 1e-5)
    z = centred * inverse[:, None]
    scale, shift = tl.load(weights + norm_at + d), tl.load(weights + norm_at + D + d)
    tl.store(next_x + place, own + z * scale[None, :] + shift[None, :], mask=there)
    if SAVE:
        tl.store(strongest + place, message, mask=there)
        tl.store(winner + place, row, mask=there)
        tl.store(update + v * (2 * D) + wide[None, :], h, mask=there)
        tl.store(normal + place, z, mask=there)
        tl.store(deviation + v, inverse[:, None], mask=there)


@triton.jit(do_not_specialize=["first_round", "end_round"])
def forward(
    weights, ints, counter, keys, x, hidden, strongest, winner, update, normal, deviation,
    first_round, end_round,
    D: tl.constexpr, ARITIES: tl.constexpr, MOST: tl.constexpr, ROWS: tl.constexpr,
    NODE_ROWS: tl.constexpr, WIDEST: tl.constexpr, PHASES: tl.constexpr, SAVE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Run rounds first_round .. end_round on embeddings `x` [L + 1, N, D], or [2, N, D] in turns.

    ARITIES has a bit for each arity that occurs; the largest is MOST. PHASES is 1 for messages, 2
    for updates, and 3 for both; then all programs wait for each other in between.
    """
    pid, programs = tl.program_id(0), tl.num_programs(0)
    nodes = tl.load(ints)
    arguments = tl.load(ints + 1)
    args, tiles = ints + tl.load(ints + 2), ints + tl.load(ints + 3)
    update_at = tl.multiple_of(tl.load(ints + 6), 16)
    norm_at = tl.multiple_of(tl.load(ints + 7), 16)
    starts = ints + tl.load(ints + 8)
    size = nodes.to(tl.int64) * D
    met = 0
    for layer in range(first_round, end_round):
        now = layer if SAVE else layer % 2
        after = layer + 1 if SAVE else (layer + 1) % 2
        saved = layer if SAVE else 0
        if PHASES & 1:
            for K in tl.static_range(1, MOST + 1):
                if (ARITIES >> K) & 1:
                    begin, end = tl.load(starts + K), tl.load(starts + K - 1)
                    for t in range(_find_first_tile(begin, pid, programs), end, programs):
                        _send_messages(
                            weights, args, x + now * size, keys,
                            hidden + saved * arguments.to(tl.int64) * D, tiles + t * TILE,
                            K, D, WIDEST, ROWS, SAVE, PRECISION,
                        )  # fmt: skip
        if PHASES == 3:
            met += 1
            _wait_for_all(counter, met)
        if PHASES & 2:
            for t in range(pid, tl.cdiv(nodes, NODE_ROWS), programs):
                _update_nodes(
                    weights, update_at, norm_at, nodes, x + now * size, x + after * size, keys,
                    strongest + saved * size, winner + saved * size, update + 2 * saved * size,
                    normal + saved * size, deviation + saved * nodes, t,
                    D, NODE_ROWS, SAVE, PRECISION,
                )  # fmt: skip
        if PHASES == 3:
            met += 1
            _wait_for_all(counter, met)


@triton.jit
def _gather_sum(rows, begin, end, index, D: tl.constexpr, COUNT: tl.constexpr, STEP: tl.constexpr):
    """Sum rows[index[begin:end]] for each of COUNT nodes, in order: [COUNT, D]."""
    d = tl.arange(0, D)[None, None, :]
    step = tl.arange(0, STEP)[None, :]
    total = tl.zeros((COUNT, D), tl.float32)
    longest = tl.max(end - begin, axis=0)
    for done in range(0, longest, STEP):
        at = begin[:, None] + done + step
        inside = at < end[:, None]
        row = tl.load(index + at, mask=inside, other=0)
        found = tl.load(rows + row[:, :, None] * D + d, mask=inside[:, :, None], other=0.0)
        total += tl.sum(found, axis=1)
    return total


@triton.jit
def _update_backward(
    weights, update_at, norm_at, nodes, layer, rounds, ptr, order, wanted, depths, count,
    update, normal, deviation, from_args, grad, grad_strongest, grads, grad_update, grad_hidden,
    tile,
    D: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Go back through the update of one round, for a tile of nodes.

    `grad` [N, D] holds the gradient that the round after passed by its messages. It is replaced by
    that of this round. `grads`, `grad_update` and `grad_hidden` keep what the weights' gradients
    need.
    """
    lines = tile * ROWS + tl.arange(0, ROWS)
    v, d, wide = lines[:, None], tl.arange(0, D), tl.arange(0, 2 * D)
    there = v < nodes
    place = v * D + d[None, :]
    g = tl.zeros((ROWS, D), tl.float32)
    if layer + 1 < rounds:
        begin = tl.load(ptr + lines, mask=lines < nodes, other=0)
        end = tl.load(ptr + lines + 1, mask=lines < nodes, other=0)
        g = tl.load(grad + place, mask=there, other=0.0)
        g += _gather_sum(from_args, begin, end, order, D, ROWS, STEP)
    for w in range(count):
        if tl.load(depths + w) == layer + 1:
            g += tl.load(wanted + w * nodes.to(tl.int64) * D + place, mask=there, other=0.0)
    tl.store(grads + place, g, mask=there)
    z = tl.load(normal + place, mask=there, other=0.0)
    inverse = tl.load(deviation + v, mask=there, other=0.0)
    scaled = g * tl.load(weights + norm_at + d)[None, :]
    mean = (tl.sum(scaled, axis=1) / D)[:, None]
    along = (tl.sum(scaled * z, axis=1) / D)[:, None]
    du = (scaled - mean - z * along) * inverse
    tl.store(grad_update + place, du, mask=there)
    w_in = weights + update_at
    w_out = w_in + 4 * D * D + 2 * D
    last = tl.load(w_out + wide[None, :] * D + d[:, None])  # transposed, like the next two
    above = tl.load(w_in + d[None, :] * (2 * D) + wide[:, None])
    below = tl.load(w_in + (D + d[None, :]) * (2 * D) + wide[:, None])
    h = tl.load(update + v * (2 * D) + wide[None, :], mask=there, other=0.0)
    dh = tl.dot(du, last, input_precision=PRECISION) * mish_slope(h)
    tl.store(grad_hidden + v * (2 * D) + wide[None, :], dh, mask=there)
    message = tl.dot(dh, above, input_precision=PRECISION)
    own = tl.dot(dh, below, g, input_precision=PRECISION)
    tl.store(grad_strongest + place, message, mask=there)
    tl.store(grad + place, own, mask=there)


@triton.jit
def _messages_backward(
    weights, args, winner, grad_strongest, hidden, grad_hidden, from_args, tile,
    K: tl.constexpr, D: tl.constexpr, WIDEST: tl.constexpr, ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Go back through the messages of a tile of atoms; writes `from_args` [M, D]."""
    W: tl.constexpr = K * D
    WIDE: tl.constexpr = triton.next_power_of_2(W)
    PART: tl.constexpr = min(WIDE, WIDEST * WIDEST // WIDE)
    at = tl.multiple_of(tl.load(tile), 16)
    first, count = tl.load(tile + 1), tl.load(tile + 2)
    rows, cols = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDE)[None, :]
    there = (rows < count) & (cols < W)
    argument = first + rows * K + cols // D
    node = tl.load(args + argument, mask=there, other=0)
    won = tl.load(winner + node * D + cols % D, mask=there, other=-1) == argument
    message = tl.load(grad_strongest + node * D + cols % D, mask=there & won, other=0.0)
    out = message
    deep = tl.arange(0, WIDE)[:, None]
    for begin in tl.range(0, W, PART, num_stages=STAGES):
        part = begin + tl.arange(0, PART)
        inside = part < W
        w_out = tl.load(  # transposed, like w_in
            weights + at + W * W + W + part[None, :] * W + deep,
            mask=inside[None, :] & (deep < W), other=0.0,
        )  # fmt: skip
        w_in = tl.load(
            weights + at + cols * W + part[:, None], mask=(cols < W) & inside[:, None], other=0.0
        )
        place = first.to(tl.int64) * D + rows * W + part[None, :]
        known = (rows < count) & inside[None, :]
        h = tl.load(hidden + place, mask=known, other=0.0)
        dh = tl.dot(message, w_out, input_precision=PRECISION) * mish_slope(h)
        tl.store(grad_hidden + place, dh, mask=known)
        out = tl.dot(dh, w_in, out, input_precision=PRECISION)
    tl.store(from_args + first.to(tl.int64) * D + rows * W + cols, out, mask=there)


@triton.jit(do_not_specialize=["first_round", "end_round", "rounds", "count"])
def backward(
    weights, ints, counter, hidden, winner, update, normal, deviation, wanted, depths,
    from_args, grad, grad_strongest, grads, grad_update, grad_update_hidden, grad_hidden,
    first_round, end_round, rounds, count,
    D: tl.constexpr, ARITIES: tl.constexpr, MOST: tl.constexpr, ROWS: tl.constexpr,
    NODE_ROWS: tl.constexpr, STEP: tl.constexpr, WIDEST: tl.constexpr, PHASES: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Go back through rounds end_round - 1 down to first_round, of `rounds` in all.

    `wanted` [count, N, D] are the gradients of the embeddings after `depths`. PHASES is 1 for
    updates, 2 for messages, and 3 for both; then all programs wait for each other in between.
    """
    pid, programs = tl.program_id(0), tl.num_programs(0)
    nodes = tl.load(ints)
    arguments = tl.load(ints + 1)
    args, tiles = ints + tl.load(ints + 2), ints + tl.load(ints + 3)
    order, ptr = ints + tl.load(ints + 4), ints + tl.load(ints + 5)
    update_at = tl.multiple_of(tl.load(ints + 6), 16)
    norm_at = tl.multiple_of(tl.load(ints + 7), 16)
    starts = ints + tl.load(ints + 8)
    size = nodes.to(tl.int64) * D
    met = 0
    for turn in range(first_round, end_round):
        layer = first_round + end_round - 1 - turn
        if PHASES & 1:
            for t in range(pid, tl.cdiv(nodes, NODE_ROWS), programs):
                _update_backward(
                    weights, update_at, norm_at, nodes, layer, rounds, ptr, order, wanted, depths,
                    count, update + 2 * layer * size, normal + layer * size,
                    deviation + layer * nodes, from_args, grad, grad_strongest + layer * size,
                    grads + layer * size, grad_update + layer * size,
                    grad_update_hidden + 2 * layer * size, t, D, NODE_ROWS, STEP, PRECISION,
                )  # fmt: skip
        if PHASES == 3:
            met += 1
            _wait_for_all(counter, met)
        if PHASES & 2:
            saved = layer * arguments.to(tl.int64) * D
            for K in tl.static_range(1, MOST + 1):
                if (ARITIES >> K) & 1:
                    begin, end = tl.load(starts + K), tl.load(starts + K - 1)
                    for t in range(_find_first_tile(begin, pid, programs), end, programs):
                        _messages_backward(
                            weights, args, winner + layer * size, grad_strongest + layer * size,
                            hidden + saved, grad_hidden + saved, from_args, tiles + t * TILE,
                            K, D, WIDEST, ROWS, PRECISION,
                        )  # fmt: skip
        if PHASES == 3:
            met += 1
            _wait_for_all(counter, met)
