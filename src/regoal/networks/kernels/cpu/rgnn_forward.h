/* One round forward. */

/* Copy the node's embedding for each argument: out [rows * arity, size]. */
static void gather(int64_t rows, int64_t arity, const int64_t *args, const REAL *x, int64_t size,
                   REAL *out) {
    for (int64_t i = 0; i < rows * arity; i++)
        for (int64_t d = 0; d < size; d += LANES)
            store(out + i * size + d, load(x + args[i] * size + d));
}

/* Keep the largest message to each node. `winner`, if given, gets the argument that it went to. */
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

/* One relation of a graph. A place is shared if its part of the first layer is computed once for
 * each node, and not for each atom. */
typedef struct {
    int64_t arity, width, atoms;      /* K, K * D */
    const int64_t *args;              /* those of its atoms in this graph */
    int64_t first;                    /* row in the batch of its first argument */
    const int64_t *shared;            /* [K] nodes of each place; 0: not shared */
    const int32_t *slot;
    const int64_t *node_of;
    int shares;                       /* not 0 if any place is shared */
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

/* Count the numbers in a table with a row of K * D for each shared node of each place. */
static int64_t table_size(const Relation *rel) {
    int64_t rows = 0;
    for (int64_t i = 0; i < rel->arity; i++) rows += rel->shared[i];
    return rows * rel->width;
}

/* Allocate the largest table that any relation needs; 0 if there is no memory. */
static REAL *new_table(const Network *net, const Stage *stage) {
    int64_t most = 1;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, stage, r);
        if (table_size(&rel) > most) most = table_size(&rel);
    }
    return malloc(most * sizeof(REAL));
}

/* Compute the shared nodes' part of the first layer, without the bias. */
static void fill_table(const Relation *rel, const REAL *w, const REAL *x, int64_t D, REAL *table) {
    REAL in[ROOM];
    for (int64_t i = 0; i < rel->arity; i++) {
        const int64_t *nodes = rel->node_of + i * rel->atoms;
        int64_t block = block_rows(rel->width);
        for (int64_t v = 0; v < rel->shared[i]; v += block) {
            int64_t n = min_of(block, rel->shared[i] - v);
            gather(n, 1, nodes + v, x, D, in);
            product(n, in, D, D, w + i * D * rel->width, rel->width, rel->width, 0, table,
                    rel->width, 0);
            table += n * rel->width;
        }
    }
}

/* Return the end of the run of places from `place` on that are all shared, or all not shared. */
static int64_t run_end(const Relation *rel, int64_t place) {
    int64_t end = place + 1;
    while (end < rel->arity && !rel->shared[end] == !rel->shared[place]) end++;
    return end;
}

/* Find the rows of a table that belong to one atom's shared places; returns how many. */
INLINE int table_rows(const Relation *rel, const int32_t *slot, REAL *table, REAL **rows) {
    int count = 0;
    for (int64_t i = 0; i < rel->arity; i++) {
        if (rel->shared[i]) rows[count++] = table + slot[i] * rel->width;
        table += rel->shared[i] * rel->width;
    }
    return count;
}

/* Compute the first layer of atoms a .. a + n. Shared places are read from the table; the others
 * are multiplied. */
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

/* Compute all messages of a round and keep the largest one to each node. `hidden` and `winner` are
 * written if given. */
static void send_messages(const Network *net, const Stage *stage, const REAL *x, REAL *hidden,
                          REAL *strongest, INTEGER *winner, REAL *table) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM];
    int64_t D = net->size;
    for (int64_t r = 0; r < net->relations; r++) {
        Relation rel = relation_of(net, stage, r);
        int64_t K = rel.arity, width = rel.width, block = block_rows(width);
        const REAL *w = net->weights + net->message_at[r], *b = w + width * width;
        const REAL *w2 = b + width, *b2 = w2 + width * width;
        fill_table(&rel, w, x, D, table);
        for (int64_t a = 0; a < rel.atoms; a += block) {
            int64_t n = min_of(block, rel.atoms - a);
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
    return total_of(sum) / size;
}

/* Compute y = (u - mean) / deviation; returns one over the deviation. */
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

/* Put the rows of a and b side by side: out [n, 2 * size]. */
INLINE void join(int64_t n, const REAL *a, const REAL *b, int64_t size, REAL *out) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t d = 0; d < size; d += LANES) {
            store(out + 2 * i * size + d, load(a + i * size + d));
            store(out + (2 * i + 1) * size + d, load(b + i * size + d));
        }
    }
}

/* Compute the next embeddings from the largest messages. `update`, `normal` and `deviation` are
 * written if given. */
static void update_nodes(const Network *net, const Graph *g, const REAL *x, const REAL *strongest,
                         REAL *update, REAL *normal, REAL *deviation, REAL *next) {
    REAL in[ROOM], act[ROOM], out[ROOM];
    REAL scratch[ROOM], y[MAX_WIDTH];
    int64_t D = net->size, wide = 2 * D, block = block_rows(wide);
    const REAL *w = net->weights + net->update_at, *b = w + wide * wide, *w2 = b + wide;
    const REAL *b2 = w2 + wide * D, *scale = net->weights + net->norm_at, *shift = scale + D;
    for (int64_t v = g->node_begin; v < g->node_end; v += block) {
        int64_t n = min_of(block, g->node_end - v);
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

/* Set the maximum of nodes without messages to 0. */
static void end_maximum(const Graph *g, int64_t D, REAL *strongest) {
    for (int64_t i = g->node_begin * D; i < g->node_end * D; i += LANES) {
        vec none = splat(-INFINITY), best = load(strongest + i);
        store(strongest + i, choose(larger(best, none), best, splat(0)));
    }
}
