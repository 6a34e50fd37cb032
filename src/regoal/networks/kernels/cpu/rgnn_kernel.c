/* Rounds of message passing, forward and backward, in plain C.
 *
 * They compute the same function as `embed_reference` in rgnn.py:
 *     m_i  = f_i + MLP_R(f_1 .. f_K)_i                  for every atom R(o_1 .. o_K)
 *     f(o) = f(o) + LayerNorm(MLP_U(max messages, f(o)))
 * If several messages are largest, the first of them gets the gradient.
 *
 * Shapes: N nodes, M arguments of all atoms, D embedding size (a multiple of LANES), L layers.
 * A shard has the nodes [node_begin, node_end) and, of each relation, the atoms
 * [atom_begin, atom_end). It holds whole instances, so shards can be computed in parallel.
 */
#include "rgnn_dense.h"
#include "rgnn_stages.h"
#include "rgnn_forward.h"
#include "rgnn_backward.h"
#include "rgnn_threads.h"
#include "relaxed_plans.h"

typedef struct {        /* values of the forward pass that the backward pass needs */
    REAL *embeddings;   /* [L + 1, N, D] before each round, and after the last */
    REAL *strongest;    /* [L, N, D] largest message, 0 if there is none */
    INTEGER *winner;    /* [L, N, D] the argument that it went to, -1 for none */
    REAL *hidden;       /* [L, M, D] message MLPs before the activation */
    REAL *update;       /* [L, N, 2D] update MLP before the activation */
    REAL *normal;       /* [L, N, D] normalised update, before scale and shift */
    REAL *deviation;    /* [L, N] one over the standard deviation */
} Activations;

/* ---- from stage to stage, in place, as a node's number never falls ---- */

/* Fill the rows of a stage's nodes from those of the stage before. */
static void expand(const Stage *stage, int64_t D, REAL *x) {
    const Graph *g = &stage->graph;
    for (int64_t v = g->node_end - 1; v >= g->node_begin; v--) {
        const REAL *from = x + stage->before[v - g->node_begin] * D;
        for (int64_t d = 0; d < D; d += LANES) store(x + v * D + d, load(from + d));
    }
}

/* Add the gradients of a stage's nodes up to those of the stage before. */
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

/* Fill the rows of all nodes of the whole graph from those of a stage's nodes. */
static void spread(const Graph *whole, const Stage *stage, int64_t D, const REAL *x, REAL *out) {
    for (int64_t v = whole->node_begin; v < whole->node_end; v++) {
        const REAL *from = x + stage->class_of[v - whole->node_begin] * D;
        for (int64_t d = 0; d < D; d += LANES) store(out + v * D + d, load(from + d));
    }
}

/* Add the gradients of the whole graph's nodes to those of a stage's nodes, `grad`. */
static void gather_gradients(const Graph *whole, const Stage *stage, int64_t D, const REAL *grads,
                             REAL *grad) {
    for (int64_t v = whole->node_begin; v < whole->node_end; v++) {
        REAL *to = grad + stage->class_of[v - whole->node_begin] * D;
        for (int64_t d = 0; d < D; d += LANES)
            store(to + d, load(to + d) + load(grads + v * D + d));
    }
}

/* ---- all rounds forward ---- */

/* A batch cut into shards. */
typedef struct {
    const Network *net;
    int64_t count;
    const Graph *graphs;   /* [count] */
    Stages *const *stages; /* [count], each of the size that `regoal_room` returns */
} Shards;

typedef struct {
    const Shards *shards;
    int64_t wanted;        /* W */
    const int64_t *depths; /* [W], rising; the last one is the number of layers */
    const Activations *saved;
    REAL *out;             /* [W, N, D] */
} Forward;

static int64_t forward_shard(const void *call, int64_t shard) {
    const Forward *c = call;
    const Network *net = c->shards->net;
    const Graph *g = c->shards->graphs + shard;
    const Activations *saved = c->saved;
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

/* Run all rounds and keep what the backward pass needs. `out` gets the embeddings after the wanted
 * depths. `saved` is filled; the first N rows of its embeddings must be 0 before. This function and
 * the two below return 0, or another number if there is no memory. */
int64_t regoal_forward(const Shards *shards, int64_t wanted, const int64_t *depths,
                       const Activations *saved, REAL *out) {
    Forward call = {shards, wanted, depths, saved, out};
    return run_shards(shards->count, forward_shard, &call);
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

/* Run all rounds and keep nothing for a backward pass. The first half of `x` [2, N, D] must be 0
 * before; `strongest` [N, D] is memory to work in. `out` [N, D] gets the last embeddings. */
int64_t regoal_infer(const Shards *shards, int64_t layers, REAL *x, REAL *strongest, REAL *out) {
    Infer call = {shards, layers, x, strongest, out};
    return run_shards(shards->count, infer_shard, &call);
}

/* ---- all rounds backward ---- */

typedef struct {
    const Shards *shards;
    int64_t wanted;
    const int64_t *depths;
    const REAL *grads;           /* [W, N, D] gradients of the embeddings after the wanted depths */
    const Activations *saved;
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
    const Activations *saved = c->saved;
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

/* Run all rounds backward, after `regoal_forward` with the same shards, depths and `saved`.
 * `transposed` [weights] and `work` [2, N, D] are memory to work in. `dw` [count, weights] must be
 * 0 before. Its first row becomes the weights' gradients: those of the shards, added in order. */
int64_t regoal_backward(const Shards *shards, int64_t wanted, const int64_t *depths,
                        const REAL *grads, const Activations *saved, REAL *transposed, REAL *work,
                        REAL *dw, int64_t weights) {
    REAL *strongest = work + shards->graphs->nodes * shards->net->size;
    Backward call = {shards, wanted, depths, grads, saved, transposed, work, strongest, dw, weights};
    transpose_weights(shards->net, transposed);
    int64_t failed = run_shards(shards->count, backward_shard, &call);
    for (int64_t shard = 1; shard < shards->count; shard++)
        for (int64_t i = 0; i < weights; i++) dw[i] += dw[shard * weights + i];
    return failed;
}
