/* One round backward: turns the gradients of its result into those of its input. */

static void transpose(const REAL *w, int64_t rows, int64_t columns, REAL *out) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) out[j * rows + i] = w[i * columns + j];
}

/* Transpose each matrix of an MLP. It takes the place of the original; biases are not set. */
static void transpose_mlp(const REAL *w, int64_t inputs, int64_t outputs, REAL *out) {
    transpose(w, inputs, inputs, out);
    int64_t second = inputs * inputs + inputs;
    transpose(w + second, inputs, outputs, out + second);
}

static void transpose_weights(const Network *net, REAL *out) {
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t width = net->arity[r] * net->size;
        transpose_mlp(net->weights + net->message_at[r], width, width, out + net->message_at[r]);
    }
    transpose_mlp(net->weights + net->update_at, 2 * net->size, net->size, out + net->update_at);
}

/* Go back through an MLP's second layer and its activation. `hidden` is the first layer's result.
 * Its gradient is written to `grad` [n, inputs]. The gradients of both biases and of the second
 * matrix are added to `dw`. */
static void second_layer_backward(int64_t n, int64_t inputs, int64_t outputs, const REAL *hidden,
                                  const REAL *transposed, const REAL *grad_out, REAL *grad,
                                  REAL *dw) {
    REAL act[ROOM];
    int64_t second = inputs * inputs + inputs;
    product(n, grad_out, outputs, outputs, transposed + second, inputs, inputs, 0, grad, inputs, 0);
    mish_backward(n * inputs, hidden, act, grad);
    outer_product(n, act, inputs, inputs, grad_out, outputs, outputs, dw + second, outputs);
    add_rows(n, grad_out, outputs, dw + second + inputs * outputs);
    add_rows(n, grad, inputs, dw + inputs * inputs);
}

/* Go back through some of the first layer's inputs, `in` [n, inputs]. Reads `grad` [n, width] and
 * adds to `grad_in` [n, inputs] and to `dw`. `transposed` and `dw` begin at these inputs. */
static void first_layer_backward(int64_t n, const REAL *in, int64_t in_step, int64_t inputs,
                                 const REAL *grad, int64_t width, const REAL *transposed,
                                 REAL *grad_in, REAL *dw) {
    outer_product(n, in, in_step, inputs, grad, width, width, dw, width);
    product(n, grad, width, width, transposed, width, inputs, 0, grad_in, in_step, 1);
}

/* Go back through the update. `grad` [N, D] holds the gradient of the round's result, and then that
 * of its input, through the residual and the MLP. `grad_strongest` [N, D] is written. */
static void update_backward(const Network *net, const Graph *g, const REAL *transposed,
                            const REAL *x, const REAL *strongest, const REAL *update,
                            const REAL *normal, const REAL *deviation, REAL *grad,
                            REAL *grad_strongest, REAL *dw) {
    REAL in[ROOM], out[ROOM], inner[ROOM], grad_in[ROOM];
    REAL product_with[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = block_rows(wide);
    const REAL *scale = net->weights + net->norm_at;
    REAL *dscale = dw + net->norm_at, *dshift = dscale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = min_of(block, g->node_end - v);
        for (int64_t i = 0; i < n; i++) {
            const REAL *z = normal + (v + i) * D, *dy = grad + (v + i) * D;
            REAL *du = out + i * D;
            for (int64_t d = 0; d < D; d += LANES) {
                store(dscale + d, load(dscale + d) + load(dy + d) * load(z + d));
                store(dshift + d, load(dshift + d) + load(dy + d));
                store(du + d, load(dy + d) * load(scale + d));
                store(product_with + d, load(du + d) * load(z + d));
            }
            REAL mean = mean_of(du, D), along = mean_of(product_with, D);
            for (int64_t d = 0; d < D; d += LANES)
                store(du + d, (load(du + d) - mean - load(z + d) * along) * deviation[v + i]);
        }
        join(n, strongest + v * D, x + v * D, D, in);
        memset(grad_in, 0, n * wide * sizeof(REAL));
        second_layer_backward(n, wide, D, update + v * wide, transposed + net->update_at, out, inner,
                              dw + net->update_at);
        first_layer_backward(n, in, wide, wide, inner, wide, transposed + net->update_at, grad_in,
                             dw + net->update_at);
        for (int64_t i = 0; i < n; i++)
            for (int64_t d = 0; d < D; d += LANES) {
                store(grad_strongest + (v + i) * D + d, load(grad_in + i * wide + d));
                REAL *at = grad + (v + i) * D + d;
                store(at, load(at) + load(grad_in + i * wide + D + d));
            }
    }
}

/* Write the messages' gradients [n * K, D]: zero if another message was the largest. */
static void select_gradients(int64_t count, int64_t first, const int64_t *args,
                             const INTEGER *winner, const REAL *grad_strongest, int64_t D,
                             REAL *out) {
    for (int64_t i = 0; i < count; i++) {
        ivec row = (INTEGER)(first + i) - (ivec){0};
        for (int64_t d = 0; d < D; d += LANES) {
            mask won = equal(*(const ivec *)(winner + args[i] * D + d), row);
            vec y = load(grad_strongest + args[i] * D + d);
            store(out + i * D + d, choose(won, y, splat(0)));
        }
    }
}

/* Add each row to the row of `x` that belongs to its node. */
static void scatter(int64_t count, const int64_t *nodes, const REAL *rows, int64_t D, REAL *x) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < D; d += LANES) {
            REAL *at = x + nodes[i] * D + d;
            store(at, load(at) + load(rows + i * D + d));
        }
}

/* Go back through the first layer of atoms a .. a + n. Gradients of places that are not shared go
 * to the inputs. Those of shared places are added up in the table. */
static void atoms_backward(const Relation *rel, int64_t a, int64_t n, const REAL *in, int64_t D,
                           const REAL *grad, const REAL *transposed, REAL *table, REAL *grad_in,
                           REAL *dw) {
    int64_t width = rel->width, K = rel->arity;
    for (int64_t i = 0; i < K; i = run_end(rel, i))
        if (!rel->shared[i])
            first_layer_backward(n, in + i * D, width, (run_end(rel, i) - i) * D, grad, width,
                                 transposed + i * D, grad_in + i * D, dw + i * D * width);
    for (int64_t row = 0; row < n; row++) {
        REAL *part[MAX_ARITY];
        int parts = table_rows(rel, rel->slot + (a + row) * K, table, part);
        for (int j = 0; j < parts; j++)
            for (int64_t c = 0; c < width; c += LANES)
                store(part[j] + c, load(part[j] + c) + load(grad + row * width + c));
    }
}

/* Pass the sums in the table on to the shared nodes. */
static void table_backward(const Relation *rel, const REAL *x, int64_t D, const REAL *table,
                           const REAL *transposed, REAL *grad, REAL *dw) {
    REAL in[ROOM], grad_in[ROOM];
    int64_t width = rel->width, block = block_rows(width);
    for (int64_t i = 0; i < rel->arity; i++) {
        const int64_t *nodes = rel->node_of + i * rel->atoms;
        for (int64_t v = 0; v < rel->shared[i]; v += block) {
            int64_t n = min_of(block, rel->shared[i] - v);
            gather(n, 1, nodes + v, x, D, in);
            memset(grad_in, 0, n * D * sizeof(REAL));
            first_layer_backward(n, in, D, D, table, width, transposed + i * D, grad_in,
                                 dw + i * D * width);
            scatter(n, nodes + v, grad_in, D, grad);
            table += n * width;
        }
    }
}

/* Go back through all messages of a round; `grad` and `dw` are added to. */
static void messages_backward(const Network *net, const Stage *stage, const REAL *transposed,
                              const REAL *x, const REAL *hidden, const INTEGER *winner,
                              const REAL *grad_strongest, REAL *grad, REAL *dw, REAL *table) {
    REAL in[ROOM], out[ROOM], inner[ROOM], grad_in[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, stage, r);
        int64_t K = rel.arity, width = rel.width, block = block_rows(width);
        int64_t at = net->message_at[r];
        memset(table, 0, table_size(&rel) * sizeof(REAL));
        for (int64_t a = 0; a < rel.atoms; a += block) {
            int64_t n = min_of(block, rel.atoms - a), first = rel.first + a * K;
            const int64_t *args = rel.args + a * K;
            gather(n, K, args, x, D, in);
            select_gradients(n * K, first, args, winner, grad_strongest, D, out);
            memcpy(grad_in, out, n * width * sizeof(REAL));
            second_layer_backward(n, width, width, hidden + first * D, transposed + at, out, inner,
                                  dw + at);
            atoms_backward(&rel, a, n, in, D, inner, transposed + at, table, grad_in, dw + at);
            scatter(n * K, args, grad_in, D, grad);
        }
        table_backward(&rel, x, D, table, transposed + at, grad, dw + at);
    }
}
