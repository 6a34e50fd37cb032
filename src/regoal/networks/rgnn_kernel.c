/* Rounds of message passing, forward and backward, in plain C.
 *
 * The same function as `embed_reference` in rgnn.py:
 *     m_i  = f_i + MLP_R(f_1 .. f_K)_i                  for every atom R(o_1 .. o_K)
 *     f(o) = f(o) + LayerNorm(MLP_U(max messages, f(o)))
 * Where several messages are largest, the gradient flows to the first of them.
 *
 * Shapes: N nodes, M arguments of all atoms, D embedding size (a multiple of LANES), L layers.
 * A shard is the nodes [node_begin, node_end) and, of each relation, the atoms
 * [atom_begin, atom_end): whole instances, so that shards run beside each other.
 */
#include "rgnn_dense.h"
#include "rgnn_stages.h"
#include "rgnn_threads.h"

typedef struct {        /* what the backward pass needs, [L, ...] */
    REAL *embeddings;   /* [L + 1, N, D] before each round, and after the last */
    REAL *strongest;    /* [L, N, D] largest message, 0 where there is none */
    INTEGER *winner;    /* [L, N, D] which row of the arguments it came from, -1 for none */
    REAL *hidden;       /* [L, M, D] message MLPs before the activation */
    REAL *update;       /* [L, N, 2D] update MLP before the activation */
    REAL *normal;       /* [L, N, D] normalised update, before scale and shift */
    REAL *deviation;    /* [L, N] one over the standard deviation */
} Saved;

/* ---- one round forward ---- */

static void gather(int64_t rows, int64_t arity, const int64_t *args, const REAL *x, int64_t size,
                   REAL *out) {
    for (int64_t i = 0; i < rows * arity; i++)
        for (int64_t d = 0; d < size; d += LANES)
            store(out + i * size + d, load(x + args[i] * size + d));
}

/* `winner` may be missing. */
static void keep_strongest(int64_t count, int64_t first, const int64_t *args, const REAL *messages,
                           int64_t size, REAL *strongest, INTEGER *winner) {
    for (int64_t i = 0; i < count; i++) {
        ivec row = (INTEGER)(first + i) - (ivec){0};
        for (int64_t d = 0; d < size; d += LANES) {
            REAL *best = strongest + args[i] * size + d;
            vec m = load(messages + i * size + d), b = load(best);
            mask won = larger(m, b);
            store(best, choose(won, m, b));
            if (!winner) continue;
            ivec *who = (ivec *)(winner + args[i] * size + d);
            *who = choose_integer(won, row, *who);
        }
    }
}

/* One relation of a graph, and the places whose part of the first layer is shared. */
typedef struct {
    int64_t arity, width, atoms;      /* K, K * D */
    const int64_t *args;              /* of its first atom in this graph */
    int64_t first;                    /* that argument's row in the batch */
    const int64_t *shared;            /* [K] */
    const int32_t *slot;
    const int64_t *node_of;
    int shares;                       /* whether any place is shared */
} Relation;

static Relation relation_of(const Network *net, const Stage *stage, int64_t r) {
    Relation found = {.arity = net->arity[r], .width = net->arity[r] * net->size};
    const Graph *g = &stage->graph;
    found.atoms = g->atom_end[r];
    found.first = stage->row_at[r];
    found.args = g->args + g->args_at[r];
    found.slot = stage->slot + g->args_at[r];
    found.node_of = stage->node_of + g->args_at[r];
    found.shared = stage->shared + places_before(net, r);
    for (int64_t i = 0; i < found.arity; i++) found.shares |= found.shared[i] > 0;
    return found;
}

/* Numbers in a table with one row of K * D for each shared node of each place. */
static int64_t table_size(const Relation *rel) {
    int64_t rows = 0;
    for (int64_t i = 0; i < rel->arity; i++) rows += rel->shared[i];
    return rows * rel->width;
}

/* Room for the largest table of all relations. */
static REAL *new_table(const Network *net, const Stage *stage) {
    int64_t most = 1;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, stage, r);
        if (table_size(&rel) > most) most = table_size(&rel);
    }
    return malloc(most * sizeof(REAL));
}

/* The shared nodes' part of the first layer, before the bias. */
static void fill_table(const Relation *rel, const REAL *w, const REAL *x, int64_t D, REAL *table) {
    REAL in[ROOM];
    for (int64_t i = 0; i < rel->arity; i++) {
        const int64_t *nodes = rel->node_of + i * rel->atoms;
        int64_t block = rows_of(rel->width);
        for (int64_t v = 0; v < rel->shared[i]; v += block) {
            int64_t n = fewer(block, rel->shared[i] - v);
            gather(n, 1, nodes + v, x, D, in);
            product(n, in, D, D, w + i * D * rel->width, rel->width, rel->width, 0, table,
                    rel->width, 0);
            table += n * rel->width;
        }
    }
}

/* The place after the run of places from `place` on that are all shared or all not. */
static int64_t run_end(const Relation *rel, int64_t place) {
    int64_t end = place + 1;
    while (end < rel->arity && !rel->shared[end] == !rel->shared[place]) end++;
    return end;
}

/* The rows of a table that belong to one atom's shared places; returns how many. */
INLINE int table_rows(const Relation *rel, const int32_t *slot, REAL *table, REAL **rows) {
    int count = 0;
    for (int64_t i = 0; i < rel->arity; i++) {
        if (rel->shared[i]) rows[count++] = table + slot[i] * rel->width;
        table += rel->shared[i] * rel->width;
    }
    return count;
}

/* The first layer of atoms a .. a + n: the shared places from the table, the others multiplied. */
static void first_layer(const Relation *rel, int64_t a, int64_t n, const REAL *in, int64_t D,
                        const REAL *w, const REAL *bias, REAL *table, REAL *h) {
    int64_t width = rel->width, K = rel->arity;
    for (int64_t row = 0; row < n; row++) {
        REAL *part[MAX_ARITY];
        int parts = table_rows(rel, rel->slot + (a + row) * K, table, part);
        for (int64_t c = 0; c < width; c += LANES) {
            vec sum = load(bias + c);
            for (int j = 0; j < parts; j++) sum += load(part[j] + c);
            store(h + row * width + c, sum);
        }
    }
    for (int64_t i = 0; i < K; i = run_end(rel, i))
        if (!rel->shared[i])
            product(n, in + i * D, width, (run_end(rel, i) - i) * D, w + i * D * width, width, width,
                    0, h, width, 1);
}

static void send_messages(const Network *net, const Stage *stage, const REAL *x, REAL *hidden,
                          REAL *strongest, INTEGER *winner, REAL *table) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, stage, r);
        int64_t K = rel.arity, width = rel.width, block = rows_of(width);
        const REAL *w = net->weights + net->message_at[r], *b = w + width * width;
        const REAL *w2 = b + width, *b2 = w2 + width * width;
        fill_table(&rel, w, x, D, table);
        for (int64_t a = 0; a < rel.atoms; a += block) {
            int64_t n = fewer(block, rel.atoms - a);
            const int64_t *args = rel.args + a * K;
            REAL *h = hidden ? hidden + (rel.first + a * K) * D : scratch;
            gather(n, K, args, x, D, in);
            if (rel.shares) first_layer(&rel, a, n, in, D, w, b, table, h);
            else product(n, in, width, width, w, width, width, b, h, width, 0);
            mish(n * width, h, act);
            for (int64_t i = 0; i < n; i++)
                for (int64_t c = 0; c < width; c += LANES)
                    store(out + i * width + c, load(in + i * width + c) + load(b2 + c));
            product(n, act, width, width, w2, width, width, 0, out, width, 1);
            keep_strongest(n * K, rel.first + a * K, args, out, D, strongest, winner);
        }
    }
}

static REAL mean_of(const REAL *x, int64_t size) {
    vec sum = splat(0);
    for (int64_t d = 0; d < size; d += LANES) sum += load(x + d);
    REAL total = 0;
    for (int i = 0; i < LANES; i++) total += sum[i];
    return total / size;
}

/* y = (u - mean) / deviation; returns one over the deviation */
static REAL normalise(const REAL *u, int64_t size, REAL *y) {
    REAL mean = mean_of(u, size), square[MAX_WIDTH];
    for (int64_t d = 0; d < size; d += LANES) {
        vec v = load(u + d) - mean;
        store(y + d, v);
        store(square + d, v * v);
    }
    REAL inverse = 1 / (REAL)sqrt((double)mean_of(square, size) + 1e-5);
    for (int64_t d = 0; d < size; d += LANES) store(y + d, load(y + d) * inverse);
    return inverse;
}

INLINE void join(int64_t n, const REAL *a, const REAL *b, int64_t size, REAL *out) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t d = 0; d < size; d += LANES) {
            store(out + 2 * i * size + d, load(a + i * size + d));
            store(out + (2 * i + 1) * size + d, load(b + i * size + d));
        }
    }
}

static void update_nodes(const Network *net, const Graph *g, const REAL *x, const REAL *strongest,
                         REAL *update, REAL *normal, REAL *deviation, REAL *next) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM], y[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = rows_of(wide);
    const REAL *w = net->weights + net->update_at, *b = w + wide * wide, *w2 = b + wide;
    const REAL *b2 = w2 + wide * D, *scale = net->weights + net->norm_at, *shift = scale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = fewer(block, g->node_end - v);
        REAL *h = update ? update + v * wide : scratch;
        join(n, strongest + v * D, x + v * D, D, in);
        product(n, in, wide, wide, w, wide, wide, b, h, wide, 0);
        mish(n * wide, h, act);
        product(n, act, wide, wide, w2, D, D, b2, out, D, 0);
        for (int64_t i = 0; i < n; i++) {
            REAL *z = normal ? normal + (v + i) * D : y;
            REAL inverse = normalise(out + i * D, D, z);
            if (deviation) deviation[v + i] = inverse;
            for (int64_t d = 0; d < D; d += LANES)
                store(next + (v + i) * D + d, load(x + (v + i) * D + d) +
                                                  load(z + d) * load(scale + d) + load(shift + d));
        }
    }
}

static void start_maximum(const Graph *g, int64_t D, REAL *strongest, INTEGER *winner) {
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i++) strongest[i] = -INFINITY;
    if (winner)
        for (int64_t i = g->node_begin * D; i < g->node_end * D; i++) winner[i] = -1;
}

static void end_maximum(const Graph *g, int64_t D, REAL *strongest) {
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i += LANES) {
        vec none = splat(-INFINITY), best = load(strongest + i);
        store(strongest + i, choose(larger(best, none), best, splat(0)));
    }
}

/* ---- from stage to stage, in place: a node's number never falls ---- */

/* The rows of a stage's nodes from those of the stage before. */
static void expand(const Stage *stage, int64_t D, REAL *x) {
    const Graph *g = &stage->graph;
    for (int64_t v = g->node_end - 1; v >= g->node_begin; v--) {
        const REAL *from = x + stage->before[v - g->node_begin] * D;
        for (int64_t d = 0; d < D; d += LANES) store(x + v * D + d, load(from + d));
    }
}

/* Gradients of the rows of the stage before from those of a stage's. */
static void contract(const Stage *stage, int64_t D, REAL *grad) {
    const Graph *g = &stage->graph;
    for (int64_t v = g->node_begin; v < g->node_end; v++) {
        REAL *from = grad + v * D, *to = grad + stage->before[v - g->node_begin] * D;
        if (from == to) continue;
        for (int64_t d = 0; d < D; d += LANES) {
            store(to + d, load(to + d) + load(from + d));
            store(from + d, splat(0));
        }
    }
}

/* The rows of all nodes of the whole from those of a stage's. */
static void spread(const Graph *whole, const Stage *stage, int64_t D, const REAL *x, REAL *out) {
    for (int64_t v = whole->node_begin; v < whole->node_end; v++) {
        const REAL *from = x + stage->class_of[v - whole->node_begin] * D;
        for (int64_t d = 0; d < D; d += LANES) store(out + v * D + d, load(from + d));
    }
}

/* Gradients of the rows of a stage's nodes, added to `grad`, from those of the whole's. */
static void gather_gradients(const Graph *whole, const Stage *stage, int64_t D, const REAL *grads,
                             REAL *grad) {
    for (int64_t v = whole->node_begin; v < whole->node_end; v++) {
        REAL *to = grad + stage->class_of[v - whole->node_begin] * D;
        for (int64_t d = 0; d < D; d += LANES)
            store(to + d, load(to + d) + load(grads + v * D + d));
    }
}

/* ---- all rounds forward ---- */

/* A batch, cut into shards. */
typedef struct {
    const Network *net;
    int64_t count;
    const Graph *graphs;   /* [count] */
    Stages *const *stages; /* [count], each as large as `regoal_room` says */
} Shards;

typedef struct {
    const Shards *shards;
    int64_t wanted;        /* W */
    const int64_t *depths; /* [W], rising; the last one is the number of layers */
    const Saved *saved;
    REAL *out;             /* [W, N, D] */
} Forward;

static int64_t forward_shard(const void *call, int64_t shard) {
    const Forward *c = call;
    const Network *net = c->shards->net;
    const Graph *g = c->shards->graphs + shard;
    const Saved *saved = c->saved;
    const int64_t *depths = c->depths;
    int64_t D = net->size, nodes = g->nodes * D, layers = depths[c->wanted - 1], l = 0;
    REAL *out = c->out;
    if (find_stages(net, g, layers, c->shards->stages[shard])) return 1;
    for (const Stage *stage = c->shards->stages[shard]->stage; l < layers; stage++) {
        REAL *table = new_table(net, stage);
        if (!table) return 1;
        if (l) expand(stage, D, saved->embeddings + l * nodes);
        for (; l < stage->until; l++) {
            REAL *x = saved->embeddings + l * nodes, *strongest = saved->strongest + l * nodes;
            INTEGER *winner = saved->winner + l * nodes;
            start_maximum(&stage->graph, D, strongest, winner);
            send_messages(net, stage, x, saved->hidden + l * g->arguments * D, strongest, winner,
                          table);
            end_maximum(&stage->graph, D, strongest);
            update_nodes(net, &stage->graph, x, strongest, saved->update + l * nodes * 2,
                         saved->normal + l * nodes, saved->deviation + l * g->nodes, x + nodes);
            if (l + 1 == *depths) {
                spread(g, stage, D, x + nodes, out);
                out += nodes, depths++;
            }
        }
        free(table);
    }
    return 0;
}

/* `out` are the embeddings after the wanted depths; `saved` is filled, but for the first N rows of
 * its embeddings, which must be the start, 0. As the calls below, it returns not 0 where there is
 * no memory. */
int64_t regoal_forward(const Shards *shards, int64_t wanted, const int64_t *depths,
                       const Saved *saved, REAL *out) {
    Forward call = {shards, wanted, depths, saved, out};
    return beside_each_other(shards->count, forward_shard, &call);
}

typedef struct {
    const Shards *shards;
    int64_t layers;
    REAL *x, *strongest, *out;
} Infer;

static int64_t infer_shard(const void *call, int64_t shard) {
    const Infer *c = call;
    const Network *net = c->shards->net;
    const Graph *g = c->shards->graphs + shard;
    int64_t D = net->size, nodes = g->nodes * D, l = 0;
    if (find_stages(net, g, c->layers, c->shards->stages[shard])) return 1;
    const Stage *stage = c->shards->stages[shard]->stage;
    for (; l < c->layers; stage++) {
        REAL *table = new_table(net, stage);
        if (!table) return 1;
        if (l) expand(stage, D, c->x + (l % 2) * nodes);
        for (; l < stage->until; l++) {
            REAL *now = c->x + (l % 2) * nodes, *next = c->x + ((l + 1) % 2) * nodes;
            start_maximum(&stage->graph, D, c->strongest, 0);
            send_messages(net, stage, now, 0, c->strongest, 0, table);
            end_maximum(&stage->graph, D, c->strongest);
            update_nodes(net, &stage->graph, now, c->strongest, 0, 0, 0, next);
        }
        free(table);
    }
    spread(g, stage - 1, D, c->x + (c->layers % 2) * nodes, c->out);
    return 0;
}

/* Without anything for a backward pass: `x` [2, N, D] begins with the start, 0; `strongest` [N, D]
 * is room to work in; `out` [N, D]. */
int64_t regoal_infer(const Shards *shards, int64_t layers, REAL *x, REAL *strongest, REAL *out) {
    Infer call = {shards, layers, x, strongest, out};
    return beside_each_other(shards->count, infer_shard, &call);
}

/* ---- one round backward ---- */

static void transpose(const REAL *w, int64_t rows, int64_t columns, REAL *out) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) out[j * rows + i] = w[i * columns + j];
}

/* An MLP's weights, each matrix transposed in place of the original; biases stay unset. */
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

/* Back through an MLP's second layer and its activation: the gradient of the first layer's result
 * goes into `grad` [n, inputs], the biases' and the second layer's are added to `dw`. `hidden` is
 * the first layer's result. */
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

/* Back through some of the first layer's inputs: `in` [n, inputs], `grad` [n, width] in, `grad_in`
 * [n, inputs] added to, and so is `dw`; `w` of both begins at these inputs. */
static void first_layer_backward(int64_t n, const REAL *in, int64_t in_step, int64_t inputs,
                                 const REAL *grad, int64_t width, const REAL *transposed,
                                 REAL *grad_in, REAL *dw) {
    outer_product(n, in, in_step, inputs, grad, width, width, dw, width);
    product(n, grad, width, width, transposed, width, inputs, 0, grad_in, in_step, 1);
}

/* Back through the update: `grad` [N, D] of the round's result becomes that of its input through
 * the residual and the MLP; `grad_strongest` [N, D] is set. */
static void update_backward(const Network *net, const Graph *g, const REAL *transposed,
                            const REAL *x, const REAL *strongest, const REAL *update,
                            const REAL *normal, const REAL *deviation, REAL *grad,
                            REAL *grad_strongest, REAL *dw) {
    REAL in[ROOM], out[ROOM], inner[ROOM], grad_in[ROOM];
    REAL product_with[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = rows_of(wide);
    const REAL *scale = net->weights + net->norm_at;
    REAL *dscale = dw + net->norm_at, *dshift = dscale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = fewer(block, g->node_end - v);
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

/* The strongest messages' gradients [n * K, D]: zero where another row has won. */
static void won_gradients(int64_t count, int64_t first, const int64_t *args, const INTEGER *winner,
                          const REAL *grad_strongest, int64_t D, REAL *out) {
    for (int64_t i = 0; i < count; i++) {
        ivec row = (INTEGER)(first + i) - (ivec){0};
        for (int64_t d = 0; d < D; d += LANES) {
            mask won = equal(*(const ivec *)(winner + args[i] * D + d), row);
            vec y = load(grad_strongest + args[i] * D + d);
            store(out + i * D + d, choose(won, y, splat(0)));
        }
    }
}

static void scatter(int64_t count, const int64_t *nodes, const REAL *rows, int64_t D, REAL *x) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < D; d += LANES) {
            REAL *at = x + nodes[i] * D + d;
            store(at, load(at) + load(rows + i * D + d));
        }
}

/* Atoms a .. a + n: gradients of the places that are not shared go on to the inputs, those of the
 * shared ones are added up in the table. */
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

static void table_backward(const Relation *rel, const REAL *x, int64_t D, const REAL *table,
                           const REAL *transposed, REAL *grad, REAL *dw) {
    REAL in[ROOM], grad_in[ROOM];
    int64_t width = rel->width, block = rows_of(width);
    for (int64_t i = 0; i < rel->arity; i++) {
        const int64_t *nodes = rel->node_of + i * rel->atoms;
        for (int64_t v = 0; v < rel->shared[i]; v += block) {
            int64_t n = fewer(block, rel->shared[i] - v);
            gather(n, 1, nodes + v, x, D, in);
            memset(grad_in, 0, n * D * sizeof(REAL));
            first_layer_backward(n, in, D, D, table, width, transposed + i * D, grad_in,
                                 dw + i * D * width);
            scatter(n, nodes + v, grad_in, D, grad);
            table += n * width;
        }
    }
}

static void messages_backward(const Network *net, const Stage *stage, const REAL *transposed,
                              const REAL *x, const REAL *hidden, const INTEGER *winner,
                              const REAL *grad_strongest, REAL *grad, REAL *dw, REAL *table) {
    REAL in[ROOM], out[ROOM], inner[ROOM], grad_in[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, stage, r);
        int64_t K = rel.arity, width = rel.width, block = rows_of(width), at = net->message_at[r];
        memset(table, 0, table_size(&rel) * sizeof(REAL));
        for (int64_t a = 0; a < rel.atoms; a += block) {
            int64_t n = fewer(block, rel.atoms - a), first = rel.first + a * K;
            const int64_t *args = rel.args + a * K;
            gather(n, K, args, x, D, in);
            won_gradients(n * K, first, args, winner, grad_strongest, D, out);
            memcpy(grad_in, out, n * width * sizeof(REAL));
            second_layer_backward(n, width, width, hidden + first * D, transposed + at, out, inner,
                                  dw + at);
            atoms_backward(&rel, a, n, in, D, inner, transposed + at, table, grad_in, dw + at);
            scatter(n * K, args, grad_in, D, grad);
        }
        table_backward(&rel, x, D, table, transposed + at, grad, dw + at);
    }
}

typedef struct {
    const Shards *shards;
    int64_t wanted;
    const int64_t *depths;
    const REAL *grads;           /* [W, N, D] of the embeddings after the wanted depths */
    const Saved *saved;
    const REAL *transposed;      /* all weights */
    REAL *grad, *grad_strongest; /* [N, D] */
    REAL *dw;                    /* [count, weights] */
    int64_t weights;
} Backward;

static int64_t backward_shard(const void *call, int64_t shard) {
    const Backward *c = call;
    const Network *net = c->shards->net;
    const Graph *g = c->shards->graphs + shard;
    const Stages *stages = c->shards->stages[shard];
    const Saved *saved = c->saved;
    REAL *grad = c->grad, *dw = c->dw + shard * c->weights;
    int64_t D = net->size, nodes = g->nodes * D, w = c->wanted - 1, l = c->depths[w] - 1;
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i++) grad[i] = 0;
    for (const Stage *stage = stages->stage + stages->count - 1; l >= 0; stage--) {
        int64_t from = stage == stages->stage ? 0 : stage[-1].until;
        REAL *table = new_table(net, stage);
        if (!table) return 1;
        for (; l >= from; l--) {
            if (w >= 0 && c->depths[w] == l + 1)
                gather_gradients(g, stage, D, c->grads + w-- * nodes, grad);
            const REAL *x = saved->embeddings + l * nodes;
            update_backward(net, &stage->graph, c->transposed, x, saved->strongest + l * nodes,
                            saved->update + 2 * l * nodes, saved->normal + l * nodes,
                            saved->deviation + l * g->nodes, grad, c->grad_strongest, dw);
            messages_backward(net, stage, c->transposed, x, saved->hidden + l * g->arguments * D,
                              saved->winner + l * nodes, c->grad_strongest, grad, dw, table);
        }
        free(table);
        if (from) contract(stage, D, grad);
    }
    return 0;
}

/* After `regoal_forward` with the same shards, depths and `saved`. `transposed` [weights] and `work`
 * [2, N, D] are room to work in; `dw` [count, weights] begins as 0, and its first row becomes the
 * weights' gradients, those of the shards added in order. */
int64_t regoal_backward(const Shards *shards, int64_t wanted, const int64_t *depths,
                        const REAL *grads, const Saved *saved, REAL *transposed, REAL *work,
                        REAL *dw, int64_t weights) {
    REAL *strongest = work + shards->graphs->nodes * shards->net->size;
    Backward call = {shards, wanted, depths, grads, saved, transposed, work, strongest, dw, weights};
    transpose_weights(shards->net, transposed);
    int64_t failed = beside_each_other(shards->count, backward_shard, &call);
    for (int64_t shard = 1; shard < shards->count; shard++)
        for (int64_t i = 0; i < weights; i++) dw[i] += dw[shard * weights + i];
    return failed;
}
